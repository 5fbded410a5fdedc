// Package cloudfile reads the file that shapes a simulated cloud: its zones, volume types, quotas, rights, services and faults.
//
// The file starts from the demo cloud of openstacksim.Default. Each key that it has replaces that part; a list replaces the whole
// list. Decoding is strict: an unknown key is an error. IDs follow from names, so the same file always gives the same inventory.
package cloudfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Error lists everything that is wrong with a file, one line each, with the line number where one is known.
type Error struct{ Problems []string }

func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

// Cloud is a simulated cloud as its file describes it.
type Cloud struct {
	Config openstacksim.Config
	Faults []openstacksim.Fault
}

// New makes the cloud.
func (c Cloud) New() *openstacksim.Sim {
	s := openstacksim.New(c.Config)
	for _, f := range c.Faults {
		s.SetFault(f)
	}
	return s
}

// Parse reads a file. name is for messages. An empty file is the demo cloud. Errors: *Error.
func Parse(name string, text []byte) (Cloud, error) {
	var d document
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return Cloud{}, decodeError(name, err)
	}
	if err := in.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Cloud{}, &Error{[]string{name + ": the file has more than one document; write one file for each cloud"}}
	}
	c := Cloud{Config: d.config()}
	for _, f := range d.Faults {
		c.Faults = append(c.Faults, f.fault())
	}
	if problems := d.check(c.Config); len(problems) > 0 {
		for i := range problems {
			problems[i] = name + ": " + problems[i]
		}
		return Cloud{}, &Error{problems}
	}
	return c, nil
}

// fileTypes names the types of a message as the keys of the file do.
var fileTypes = strings.NewReplacer("cloudfile.", "", "openstacksim.Encryption", "encryption", "openstacksim.Project", "project", "openstacksim.AccessRule", "accessRule")

// decodeError turns the library's messages into ours: file and line first, and no name of a Go type.
func decodeError(name string, err error) *Error {
	messages := []string{err.Error()}
	if all := (*yaml.TypeError)(nil); errors.As(err, &all) {
		messages = all.Errors
	}
	e := &Error{}
	for _, message := range messages {
		message = strings.TrimPrefix(message, "yaml: ")
		where := name
		if rest, found := strings.CutPrefix(message, "line "); found {
			line, text, _ := strings.Cut(rest, ": ")
			where, message = name+":"+line, text
		}
		if key, found := strings.CutPrefix(message, "field "); found {
			key, _, _ = strings.Cut(key, " not found in type ")
			message = "unknown key " + key
		}
		e.Problems = append(e.Problems, where+": "+fileTypes.Replace(message))
	}
	return e
}

// config applies the file to the demo cloud.
func (d document) config() openstacksim.Config {
	c := openstacksim.Default()
	set(&c.Region, d.Region)
	set(&c.PageSize, d.PageSize)
	set(&c.UnversionedEndpoints, d.UnversionedEndpoints)
	set(&c.ZoneFallback, d.ZoneFallback)
	set(&c.SameZoneAttach, d.SameZoneAttach)
	if d.TokenLifetime > 0 {
		c.TokenLifetime = time.Duration(d.TokenLifetime)
	}
	c.Latency = maps.Clone(c.Latency)
	for op, l := range d.Latency {
		c.Latency[openstacksim.Operation(op)] = time.Duration(l)
	}
	if d.Zones.Compute != nil {
		c.ComputeZones, c.UnavailableComputeZones = zoneNames(d.Zones.Compute)
	}
	if d.Zones.Volume != nil {
		c.VolumeZones, c.UnavailableVolumeZones = zoneNames(d.Zones.Volume)
	}
	d.applyServices(&c)
	d.applyTypes(&c)
	d.applyIdentities(&c)
	d.applyServers(&c)
	return c
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func zoneNames(zones []zone) (names, unavailable []string) {
	for _, z := range zones {
		names = append(names, z.Name)
		if z.Available != nil && !*z.Available {
			unavailable = append(unavailable, z.Name)
		}
	}
	return names, unavailable
}

func (d document) applyServices(c *openstacksim.Config) {
	c.VolumeMicroversion, c.ComputeMicroversion = d.Services.BlockStorage.MaxMicroversion, d.Services.Compute.MaxMicroversion
	c.NoBackupService = d.Services.Backup.Missing
	if d.Services.BlockStorage.Missing {
		c.MissingServices = append(c.MissingServices, "block-storage")
	}
	if d.Services.Compute.Missing {
		c.MissingServices = append(c.MissingServices, "compute")
	}
}

func (d document) applyTypes(c *openstacksim.Config) {
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if d.VolumeTypes != nil {
		c.VolumeTypes = nil
		for _, t := range d.VolumeTypes {
			c.VolumeTypes = append(c.VolumeTypes, t.types(born)...)
		}
		if !slices.ContainsFunc(c.VolumeTypes, func(t openstacksim.VolumeType) bool { return t.Name == c.DefaultVolumeType }) {
			c.DefaultVolumeType = ""
		}
	}
	set(&c.DefaultVolumeType, d.DefaultVolumeType)
	if d.GroupTypes != nil {
		c.GroupTypes = nil
		for _, g := range d.GroupTypes {
			c.GroupTypes = append(c.GroupTypes, openstacksim.GroupType{ID: cmp.Or(g.ID, openstacksim.FixedID("group-type", g.Name)), Name: g.Name, Description: g.Description})
		}
	}
}

// types are the Count types of one entry, NAME-1 to NAME-COUNT, or the one type NAME.
func (t volumeType) types(born time.Time) []openstacksim.VolumeType {
	one := openstacksim.VolumeType{
		ID: t.ID, Name: t.Name, Description: t.Description, Private: t.Private, Projects: t.Projects, ExtraSpecs: maps.Clone(t.ExtraSpecs),
		Encryption: t.Encryption, CreatedAt: born,
	}
	if one.ExtraSpecs == nil {
		one.ExtraSpecs = map[string]string{}
	}
	if t.Multiattach {
		one.ExtraSpecs["multiattach"] = "<is> True"
	}
	if t.Replication {
		one.ExtraSpecs["replication_enabled"] = "<is> True"
	}
	if t.Zones != nil {
		one.ExtraSpecs["RESKEY:availability_zones"] = strings.Join(t.Zones, ",")
	}
	var all []openstacksim.VolumeType
	for i := range max(t.Count, 1) {
		copied := one
		if t.Count > 0 {
			copied.Name = fmt.Sprintf("%s-%d", t.Name, i+1)
		}
		copied.ID = cmp.Or(t.ID, openstacksim.FixedID("type", copied.Name))
		all = append(all, copied)
	}
	return all
}
