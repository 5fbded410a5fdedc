package v1alpha1

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
	Config     Spec       `json:"config"` // normalised: what was configured, with metadata.name folded into clusterID
	Decisions  []Decision `json:"decisions"`
	Warnings   []string   `json:"warnings,omitempty"` // those that the bundle's README.md repeats
	Files      []File     `json:"files,omitempty"`    // every file but plan.yaml, sorted by path
}

// Decision is one decided value with its reason and the facts it rests on. ID is public: "topology.enabled". The plan of
// a drift check has neither reasons nor sources.
type Decision struct {
	ID     string   `json:"id"`
	Value  any      `json:"value"`
	Reason string   `json:"reason,omitempty"`
	Facts  []string `json:"facts,omitempty"`
	Source string   `json:"source,omitempty"` // config | inferred | default
}

// File is one emitted file, by its path below DIR with forward slashes.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}
