package openstacksim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// serveMetadata serves one server as the metadata service of Nova does. The first segment names the server:
// /metadata/NAME/openstack/….
func (s *Sim) serveMetadata(c *call) reply {
	name, path, _ := strings.Cut(strings.Trim(c.path, "/"), "/")
	var v *server
	for _, id := range sortedKeys(s.servers) {
		if s.servers[id].Name == name || id == name {
			v = s.servers[id]
		}
	}
	plain := func(lines ...string) reply {
		return reply{status: http.StatusOK, body: text{"text/plain; charset=UTF-8", strings.Join(lines, "\n")}}
	}
	if v == nil {
		return reply{status: http.StatusNotFound, body: text{"text/plain; charset=UTF-8", "no server " + name + "\n"}}
	}
	switch path {
	case "":
		return plain("1.0", "2009-04-04", "latest")
	case "openstack":
		return plain("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27", "2020-10-14", "latest")
	case "openstack/latest":
		return plain("meta_data.json", "password", "vendor_data.json", "network_data.json", "vendor_data2.json")
	case "openstack/latest/meta_data.json":
		return reply{status: http.StatusOK, body: s.metadataDocument(v)}
	case "latest/meta-data/instance-id":
		return plain(fmt.Sprintf("i-%08x", v.number))
	case "latest/meta-data/placement/availability-zone":
		return plain(v.Zone)
	case "latest/meta-data/hostname", "latest/meta-data/local-hostname":
		return plain(v.Name + ".novalocal")
	}
	return reply{status: http.StatusNotFound, body: text{"text/plain; charset=UTF-8", "404 Not Found\n\nThe resource could not be found.\n\n   "}}
}

func (s *Sim) metadataDocument(v *server) obj {
	return obj{
		{"uuid", v.ID},
		{"meta", v.Metadata},
		{"hostname", v.Name + ".novalocal"},
		{"name", v.Name},
		{"launch_index", 0},
		{"availability_zone", v.Zone},
		{"random_seed", base64.StdEncoding.EncodeToString(s.random(512))},
		{"project_id", v.project},
		{"devices", []string{}},
		{"dedicated_cpus", []string{}},
	}
}
