package volume

// Severity is how much an issue affects the users of a volume (CSI specification, VolumeHealthErrorType).
type Severity int

// The severities.
const (
	Degraded     Severity = iota // usable, but not as it should be
	Inaccessible                 // no server can use it
)

// HealthIssue is one thing that is wrong with a volume (CSI specification, VolumeHealthEntry).
type HealthIssue struct {
	Severity Severity
	Reason   string // one word in CamelCase, for programs
	Message  string // what is wrong and what to do
}

// Health is a volume and its issues; a volume without a known problem has none.
type Health struct {
	Volume Volume
	Issues []HealthIssue
}
