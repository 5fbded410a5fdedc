package cloudfile

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// document is the file as its author writes it. What the file has in the form of the simulation is of its types. A pointer, map or list that is nil keeps what the demo cloud has.
type document struct {
	Region  *string           `yaml:"region"`
	Zones   zones             `yaml:"zones"`
	Latency map[string]length `yaml:"latency"`

	VolumeTypes       []volumeType `yaml:"volumeTypes"`
	DefaultVolumeType *string      `yaml:"defaultVolumeType"`
	GroupTypes        []groupType  `yaml:"groupTypes"`

	Projects               []openstacksim.Project `yaml:"projects"`
	Users                  []user                 `yaml:"users"`
	ApplicationCredentials []credential           `yaml:"applicationCredentials"`

	Services services `yaml:"services"`
	Faults   []fault  `yaml:"faults"`

	PageSize             *int   `yaml:"pageSize"`
	TokenLifetime        length `yaml:"tokenLifetime"`
	UnversionedEndpoints *bool  `yaml:"unversionedEndpoints"`
	ZoneFallback         *bool  `yaml:"zoneFallback"`
	SameZoneAttach       *bool  `yaml:"sameZoneAttach"`
}

type zones struct {
	Compute []zone `yaml:"compute"`
	Volume  []zone `yaml:"volume"`
}

// zone is a name, or an object with a name.
type zone struct {
	Name      string `yaml:"name"`
	Available *bool  `yaml:"available"`
}

// UnmarshalYAML implements yaml.Unmarshaler. A plain name is the short form.
func (z *zone) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&z.Name)
	}
	// A method of the node decodes without strictness, so unknown keys are looked for here.
	if err := onlyKeys(n, "name", "available"); err != nil {
		return err
	}
	type plain zone
	return n.Decode((*plain)(z))
}

func onlyKeys(n *yaml.Node, known ...string) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want a name or an object with the keys %v", n.Line, known)
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !slices.Contains(known, n.Content[i].Value) {
			return fmt.Errorf("line %d: unknown key %s; known are %v", n.Content[i].Line, n.Content[i].Value, known)
		}
	}
	return nil
}

type volumeType struct {
	ID          string                   `yaml:"id"`
	Name        string                   `yaml:"name"`
	Description string                   `yaml:"description"`
	Count       int                      `yaml:"count"`
	Zones       []string                 `yaml:"zones"`
	Multiattach bool                     `yaml:"multiattach"`
	Replication bool                     `yaml:"replication"`
	Private     bool                     `yaml:"private"`
	Projects    []string                 `yaml:"projects"`
	ExtraSpecs  map[string]string        `yaml:"extraSpecs"`
	Encryption  *openstacksim.Encryption `yaml:"encryption"`
}

type groupType struct {
	ID          string `yaml:"id"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

type user struct {
	Name     string              `yaml:"name"`
	Password string              `yaml:"password"`
	Roles    map[string][]string `yaml:"roles"` // by project
}

type credential struct {
	Name        string                    `yaml:"name"`
	Secret      string                    `yaml:"secret"`
	User        string                    `yaml:"user"`
	Project     string                    `yaml:"project"`
	Roles       []string                  `yaml:"roles"`
	AccessRules []openstacksim.AccessRule `yaml:"accessRules"`
}

type services struct {
	BlockStorage service       `yaml:"blockStorage"`
	Compute      service       `yaml:"compute"`
	Backup       backupService `yaml:"backup"`
}

type service struct {
	// MaxMicroversion is the highest one; the lowest is the base version of the service.
	MaxMicroversion string `yaml:"maxMicroversion"`
	Missing         bool   `yaml:"missing"`
}

type backupService struct {
	Missing bool `yaml:"missing"`
}

type fault struct {
	Service string `yaml:"service"`
	Method  string `yaml:"method"`
	Path    string `yaml:"path"` // below the service: /v3/*/types
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
	Delay   length `yaml:"delay"`
	Drop    bool   `yaml:"drop"`
	Skip    int    `yaml:"skip"`
	Times   int    `yaml:"times"`
}

// length is a duration as Go writes it: 20ms, 1m30s.
type length time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *length) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || d < 0 {
		return fmt.Errorf("line %d: %q is not a duration such as 20ms or 1m30s", n.Line, n.Value)
	}
	*l = length(d)
	return nil
}
