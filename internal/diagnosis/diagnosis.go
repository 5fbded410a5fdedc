// Package diagnosis follows one PersistentVolumeClaim to its disk and says where it hangs: which step waits, since when, why, and what to do.
//
// Read collects the readings from the cluster, the cloud and the driver; Diagnose is a pure function of them. Nothing here changes anything.
// What cannot be read, for want of a right or of credentials, is listed as not seen, and the diagnosis goes on without it.
package diagnosis

import (
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// State says how far a step is.
type State string

// The states of a step.
const (
	Done    State = "done"
	Waiting State = "waiting" // it may still succeed without anybody's help
	Failed  State = "failed"  // it does not succeed until somebody acts
	Later   State = "later"   // an earlier step is not done
	Unseen  State = "unseen"  // the readings do not say
)

// Step is one step from the claim to the disk.
type Step struct {
	Name  string     `json:"name"`
	State State      `json:"state"`
	What  string     `json:"what"`            // what was seen, on which object
	Since *time.Time `json:"since,omitempty"` // when the step began to wait
	Why   string     `json:"why,omitempty"`   // the cause, or the error as the driver or Kubernetes reports it
	// Requests are OpenStack request IDs. The operator of the cloud finds them in the logs of Cinder and Nova.
	Requests []string `json:"requests,omitempty"`
	Do       []string `json:"do,omitempty"` // what to do next; a line that begins with "$ " is a command
}

// Gap is something that could not be read.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Do   string `json:"do,omitempty"`
}

// Report is what Diagnose finds out about one claim.
type Report struct {
	Claim  string    `json:"claim"` // NAMESPACE/NAME
	Time   time.Time `json:"time"`  // of the diagnosis; ages count from it
	Cause  string    `json:"cause"` // an ID of package cause; None if nothing hangs. Scripts may depend on it
	Who    string    `json:"who"`   // who can remove the cause
	Steps  []Step    `json:"steps"`
	Unseen []Gap     `json:"unseen"` // what could not be read
}

// Hangs reports whether a step waits or has failed, or whether nobody can tell because the claim itself could not be read.
func (r Report) Hangs() bool { return r.Cause != None }

// None is the cause of a claim that does not hang.
var None = string(cause.None)
