package volume

// Severity is how bad something is for whoever uses a volume.
type Severity int

// The severities, as the CSI specification has them (VolumeHealthErrorType).
const (
	Degraded     Severity = iota // usable, but not as it should be
	Inaccessible                 // no server can use it
)

// HealthIssue is one thing that is wrong with a volume.
type HealthIssue struct {
	Severity Severity
	Reason   string // one word in CamelCase, for machines
	Message  string // what it is and what to do
}

// Health is a volume and what is wrong with it; nothing where there is no ailment.
type Health struct {
	Volume Volume
	Issues []HealthIssue
}
