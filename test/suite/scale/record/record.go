// Package record is the record of one run of test/suite/scale: figures as they were measured, story by story.
package record

// Run is one run.
type Run struct {
	Date    string  `json:"date"`
	Commit  string  `json:"commit"`
	CPUs    int     `json:"cpus"`
	Load    float64 `json:"load"` // of the machine when the run began, by others
	Volumes int     `json:"volumes"`
	Nodes   int     `json:"nodes"`
	Seeded  int     `json:"seeded"` // volumes that the suite wrote into cloud and cluster
	// KubeQPS is the request rate of the controllers and the scheduler of Kubernetes; 0 is their default. Instead are arguments that replaced
	// those of the bundle.
	KubeQPS int     `json:"kubeQPS,omitempty"`
	Instead string  `json:"instead,omitempty"`
	Size    string  `json:"size,omitempty"`   // spec.size of the bundle
	Plugin  string  `json:"plugin,omitempty"` // another driver than ours
	Stories []Story `json:"stories"`
}

// Story is one story, and what it cost.
type Story struct {
	Name    string             `json:"name"`
	Commit  string             `json:"commit,omitempty"` // if the story was repeated later than the others
	Title   string             `json:"title"`
	Volumes int                `json:"volumes"` // that the story was about
	Seconds float64            `json:"seconds"`
	Figures map[string]float64 `json:"figures,omitempty"`
	// Cloud counts the requests by service, and Requests the most frequent ones by kind.
	Cloud    map[string]int `json:"cloud"`
	Requests map[string]int `json:"requests"`
	// API counts the requests to the API server, without those of the suite.
	API       int       `json:"api"`
	Restarts  int       `json:"restarts"` // of containers
	Processes []Process `json:"processes"`
	RPCs      []RPC     `json:"rpcs"`
	Tenants   []Tenant  `json:"tenants,omitempty"`
	Budgets   []Budget  `json:"budgets,omitempty"`
}

// Process is a process at the end of a story: its memory in MiB, and the seconds of processor time during the story. Own is the memory
// that is no page of a file.
type Process struct {
	Name     string  `json:"name"`
	Resident float64 `json:"resident"`
	Peak     float64 `json:"peak"`
	Own      float64 `json:"own"`
	CPU      float64 `json:"cpu"`
}

// RPC is one method of the driver. Mean, P50 and P99 are seconds. The percentiles come from the buckets of a histogram, the mean does not.
type RPC struct {
	Method string         `json:"method"`
	Count  int            `json:"count"`
	Mean   float64        `json:"mean,omitempty"`
	P50    float64        `json:"p50"`
	P99    float64        `json:"p99"`
	Codes  map[string]int `json:"codes"`
}

// Tenant is one namespace: the seconds from its claims to their volumes.
type Tenant struct {
	Name   string  `json:"name"`
	Claims int     `json:"claims"`
	Bound  int     `json:"bound"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Budget is a promise with what was measured. A run fails above Fails, or above Limit if that is 0. They differ where the rest of Kubernetes
// does not let the promise be kept. The page then says so, and the run tells when it gets worse.
type Budget struct {
	Promise  string  `json:"promise"`
	Limit    float64 `json:"limit"`
	Fails    float64 `json:"fails,omitempty"`
	Measured float64 `json:"measured"`
}

// Kept reports whether the promise was kept.
func (b Budget) Kept() bool { return b.Measured <= b.Limit }

// Failed reports whether the run fails.
func (b Budget) Failed() bool { return b.Measured > max(b.Limit, b.Fails) }
