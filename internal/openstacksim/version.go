package openstacksim

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// The minor versions of the highest microversions, those of the real bed: Cinder 21 (Zed) 3.70 and Nova 26 (Zed) 2.93.
const (
	NewestVolumeMinor  = 70
	NewestComputeMinor = 93
)

// volumeMinor is the highest minor version of Cinder.
func (s *Sim) volumeMinor() int { return minorOf(s.config.VolumeMicroversion, NewestVolumeMinor) }

// computeMinor is the highest minor version of Nova.
func (s *Sim) computeMinor() int { return minorOf(s.config.ComputeMicroversion, NewestComputeMinor) }

// afterZed reports whether the cloud is of a later release than Zed. Its microversions say so.
func (s *Sim) afterZed() bool { return s.computeMinor() > NewestComputeMinor }

// fromCinder29 reports whether the cloud has Cinder 29 (2026.2) or later. It was seen beside Nova 34, which has 2.104.
func (s *Sim) fromCinder29() bool { return s.computeMinor() >= 104 }

// mayOnlyRead reports whether Cinder lets the user of a request only read. Before Cinder 29, its policies from before the role reader count too.
func (s *Sim) mayOnlyRead(c *call) bool {
	return s.fromCinder29() && !c.token.has("member") && !c.token.admin()
}

func (s *Sim) refusesReader(c *call, policy string) {
	if s.mayOnlyRead(c) {
		panic(forbidden(policy))
	}
}

func minorOf(configured string, standard int) int {
	if m := microversion.FindStringSubmatch(configured); m != nil {
		minor, _ := strconv.Atoi(m[2])
		return minor
	}
	return standard
}

// versioned parses the microversion of a request and sets it in c, with the header of the reply. name is the service in
// OpenStack-API-Version, major its major version. lowest and highest are its minor versions.
func (c *call) versioned(name string, major, lowest, highest int, asked string) *reply {
	switch asked {
	case "":
		c.version, c.echo = lowest, name+" "+dotted(major, lowest)
		return nil
	case "latest":
		c.version, c.echo = highest, name+" "+dotted(major, highest)
		return nil
	}
	m := microversion.FindStringSubmatch(asked)
	if m == nil {
		return new(fault(http.StatusBadRequest, "API Version String "+asked+" is of invalid format. Must be of format MajorNum.MinorNum."))
	}
	if asked != "2.0" || major != 3 { // Cinder does not echo its old major version
		c.echo = name + " " + asked
	}
	gotMajor, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if gotMajor != major || minor < lowest || minor > highest {
		return new(fault(http.StatusNotAcceptable, "Version "+asked+" is not supported by the API. Minimum is "+dotted(major, lowest)+
			" and maximum is "+dotted(major, highest)+"."))
	}
	c.version = minor
	return nil
}

var microversion = regexp.MustCompile(`^([1-9]\d*)\.([1-9]\d*|0)$`)

func dotted(major, minor int) string { return strconv.Itoa(major) + "." + strconv.Itoa(minor) }

// malformed is an OpenStack-API-Version of one word, which makes Cinder fail.
const malformed = "\x00"

// askedVersion is the version that OpenStack-API-Version requests from a service. ok is false if the header names only other
// services.
func askedVersion(h http.Header, name string) (asked string, ok bool) {
	header := strings.Join(h.Values("OpenStack-API-Version"), ",")
	if header == "" {
		return "", true
	}
	if len(strings.Fields(header)) == 1 {
		return malformed, true
	}
	for part := range strings.SplitSeq(header, ",") {
		if fields := strings.Fields(part); len(fields) == 2 && fields[0] == name {
			return fields[1], true
		}
	}
	return "", false
}

func link(rel, href string) obj { return obj{{"rel", rel}, {"href", href}} }

func identityVersion(c *call) obj {
	return obj{
		{"id", "v3.14"},
		{"status", "stable"},
		{"updated", "2020-04-07T00:00:00Z"},
		{"links", []obj{link("self", c.base(identity)+"/v3/")}},
		{"media-types", []obj{{{"base", "application/json"}, {"type", "application/vnd.openstack.identity-v3+json"}}}},
	}
}

// allVolumeVersions is the version document at the root of Cinder. That of Victoria has version 2 as well.
func (s *Sim) allVolumeVersions(c *call) reply {
	versions := []obj{s.volumeVersion(c, "v3.0")}
	r := reply{status: http.StatusMultipleChoices}
	if c.beforeZed {
		versions = append([]obj{s.volumeVersion(c, "v2.0")}, versions...)
		r.header = http.Header{"X-Openstack-Request-Id": nil, "X-Compute-Request-Id": nil}
	}
	r.body = obj{{"versions", versions}}
	return r
}

func (s *Sim) volumeVersion(c *call, name string) obj {
	version, lowest, status, updated := dotted(3, s.volumeMinor()), "3.0", "CURRENT", "2022-08-31T00:00:00Z"
	if name == "v2.0" {
		version, lowest, status, updated = "", "", "DEPRECATED", "2017-02-25T12:00:00Z"
	}
	major := strings.TrimSuffix(name, ".0")
	return obj{
		{"id", name},
		{"status", status},
		{"version", version},
		{"min_version", lowest},
		{"updated", updated},
		{"links", []obj{
			{{"rel", "describedby"}, {"type", "text/html"}, {"href", "https://docs.openstack.org/"}},
			link("self", c.base(blocks)+"/"+major+"/"),
		}},
		{"media-types", []obj{{{"base", "application/json"}, {"type", "application/vnd.openstack.volume+json;version=" + major[1:]}}}},
	}
}

func (s *Sim) computeVersion(c *call, name string) obj {
	version, lowest, status, updated := dotted(2, s.computeMinor()), "2.1", "CURRENT", "2013-07-23T11:33:21Z"
	if name == "v2.0" {
		version, lowest, status, updated = "", "", "SUPPORTED", "2011-01-21T11:33:21Z"
		if s.fromCinder29() {
			status = "DEPRECATED"
		}
	}
	return obj{
		{"id", name},
		{"status", status},
		{"version", version},
		{"min_version", lowest},
		{"updated", updated},
		{"links", []obj{link("self", c.base(compute)+"/"+strings.TrimSuffix(name, ".0")+"/")}},
	}
}

// computeVersionDetail adds the fields that only GET /v2.1/ has.
func (s *Sim) computeVersionDetail(c *call, name string) obj {
	v := s.computeVersion(c, name)
	number := strings.TrimPrefix(strings.TrimSuffix(name, ".0"), "v")
	links := append(v[5].value.([]obj), obj{{"rel", "describedby"}, {"type", "text/html"}, {"href", "http://docs.openstack.org/"}})
	v[5].value = links
	return append(v, pair{"media-types", []obj{{{"base", "application/json"}, {"type", "application/vnd.openstack.compute+json;version=" + number}}}})
}
