package v1alpha1

// KindChanges is the kind of Changes.
const KindChanges = "Changes"

// ChangeClass says who caused a change.
type ChangeClass string

// The classes of change.
const (
	CloudChange     ChangeClass = "cloud"     // the cloud offers something else
	ConfigChange    ChangeClass = "config"    // the configuration or the command line asks for something else
	GeneratorChange ChangeClass = "generator" // another version of the generator decides or writes differently
	HandEdit        ChangeClass = "handEdit"  // somebody edited or deleted a file of the bundle
)

// Changes is what `generate --check`, `generate --diff` and `plan --check` found.
type Changes struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	UpToDate   bool   `json:"upToDate"`
	// Accept are the values that generate needs for --accept, sorted. Force is whether it needs --force.
	Accept  []string `json:"accept,omitempty"`
	Force   bool     `json:"force,omitempty"`
	Changes []Change `json:"changes"`
	// Kept are the facts that this credential may not read, each as it stays from plan.yaml. Its author has chosen them.
	Kept []string `json:"kept,omitempty"`
	// Files are the files that generate would write or remove, sorted by path.
	Files []FileChange `json:"files,omitempty"`
}

// Change is one fact, setting or decision that is not what it was. Old or New is absent where there was, or is, none.
type Change struct {
	Class ChangeClass `json:"class"`
	// Message is the whole change in one line, for people. Programs read the other fields.
	Message string `json:"message"`
	// Decision is the id of the decision in plan.yaml; empty for a setting, a file, or the run itself.
	Decision string `json:"decision,omitempty"`
	// Field is the field of the decision's value, "facts" or "reason" where the value stays the same; else the setting or the file.
	Field string `json:"field,omitempty"`
	Old   any    `json:"old,omitempty"`
	New   any    `json:"new,omitempty"`
	// Facts are the facts of the cloud that changed: "defaultVolumeType: standard -> fast".
	Facts []string `json:"facts,omitempty"`
	// Objects are the Kubernetes objects concerned, "StorageClass/fast", sorted.
	Objects []string `json:"objects,omitempty"`
	// Refused says why generate refuses the change; Accept names the --accept that allows it, Force that --force does.
	Refused string `json:"refused,omitempty"`
	Accept  string `json:"accept,omitempty"`
	Force   bool   `json:"force,omitempty"`
	// Pin is the part of a Distribution's spec that keeps what was; absent where the configuration cannot.
	Pin any `json:"pin,omitempty"`
	// Remove are the keys of the configuration that have to go before the pin is added, because they ask for the change.
	Remove []string `json:"remove,omitempty"`
}

// FileChange is what generate would do to one file.
type FileChange struct {
	Path   string `json:"path"`
	Action string `json:"action"` // create | update | remove
}
