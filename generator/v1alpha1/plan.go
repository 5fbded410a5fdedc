package v1alpha1

import "bytes"

// Target is where a bundle is installed.
type Target string

// The targets.
const (
	Vanilla            Target = "vanilla"
	Standalone         Target = "standalone"
	HostedControlPlane Target = "hypershift"
)

// Format is the form of a bundle.
type Format string

// The formats.
const (
	Kustomize Format = "kustomize"
	Helm      Format = "helm"
)

// Plan is what was decided for one cloud, target and format, with the files of the bundle: DIR/plan.yaml.
type Plan struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Generator  string     `json:"generator"` // version
	Simulated  bool       `json:"simulated,omitempty"`
	Cloud      Cloud      `json:"cloud"`
	Target     Target     `json:"target"`
	Format     Format     `json:"format,omitempty"`
	Base       string     `json:"base,omitempty"`  // the checkout of manifests/ that the bundle refers to, from its directory
	Config     Spec       `json:"config"`          // normalised: what was configured, with metadata.name folded into clusterID
	Given      *Given     `json:"given,omitempty"` // the configuration itself, where config does not tell what it was
	Decisions  []Decision `json:"decisions"`
	Warnings   []string   `json:"warnings,omitempty"` // those that the bundle's README.md repeats
	Files      []File     `json:"files,omitempty"`    // every file but plan.yaml, sorted by path
}

// Given is a configuration as somebody wrote it. Reasons and warnings depend on which keys it has.
type Given struct {
	Metadata Metadata `json:"metadata,omitzero"`
	Spec     Spec     `json:"spec,omitzero"`
}

// GivenBy is what a plan with this config keeps of a configuration; nil, if it is the shortest with that meaning.
func GivenBy(d Distribution, config Spec, unnamed string) *Given {
	given, short := Given{d.Metadata, d.Spec}, config.WithoutDefaults(unnamed)
	if sameJSON(given, Given{short.Metadata, short.Spec}) {
		return nil
	}
	return &given
}

// Configured is the configuration that the plan was made from. unnamed is the clusterID of a configuration without a name.
func (p Plan) Configured(unnamed string) Distribution {
	if p.Given == nil {
		return p.Config.WithoutDefaults(unnamed)
	}
	return Distribution{Metadata: p.Given.Metadata, Spec: p.Given.Spec}
}

func sameJSON(a, b any) bool {
	one, err := JSON(a)
	other, otherErr := JSON(b)
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

// Decision is one decided value with its reason and the facts it rests on. ID is public: "topology.enabled". The plan of
// a drift check has neither reasons nor sources.
type Decision struct {
	ID     string      `json:"id"`
	Value  any         `json:"value"`
	Reason string      `json:"reason,omitempty"`
	Facts  []NamedFact `json:"facts,omitempty"`
	Source string      `json:"source,omitempty"` // config | inferred | default
}

// NamedFact is what a decision rests on: the fact zones.compute of an inventory had the value "az1, az2". A fact that has no value is there
// or not.
type NamedFact struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// String is the fact as people read it.
func (f NamedFact) String() string {
	if f.Value == "" {
		return f.Name
	}
	return f.Name + " = " + f.Value
}

// FactTexts are facts as people read them.
func FactTexts(facts []NamedFact) []string {
	var all []string
	for _, f := range facts {
		all = append(all, f.String())
	}
	return all
}

// File is one emitted file, by its path below DIR with forward slashes.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}
