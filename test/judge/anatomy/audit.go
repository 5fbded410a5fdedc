package anatomy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Call is what is read of an event of the API server's audit log (audit.k8s.io/v1). Names are in lower case in the file.
type Call struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Namespace, Name, Subresource string }
	Received  time.Time `json:"requestReceivedTimestamp"`
	Answered  time.Time `json:"stageTimestamp"`
	Stage     string
	Status    struct{ Code int } `json:"responseStatus"`
}

// Audit are calls that changed something, in the order of the log.
type Audit []Call

// ReadAudit keeps the successful calls that are no reads.
func ReadAudit(r io.Reader) (Audit, error) {
	var all Audit
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("audit event: %w", err)
		}
		if slices.Contains([]string{"create", "update", "patch", "delete"}, c.Verb) && c.Stage == "ResponseComplete" && c.Status.Code < 300 {
			all = append(all, c)
		}
	}
	return all, lines.Err()
}

// object names what a call is about. An empty part is not compared; subresource "-" means none.
type object struct{ resource, namespace, name, subresource string }

// by selects calls of a user, given by the end of its name, about an object.
func (a Audit) by(user string, of object, verbs ...string) Audit {
	var found Audit
	for _, c := range a {
		ref := c.ObjectRef
		sub := strings.TrimPrefix(of.subresource, "-")
		if slices.Contains(verbs, c.Verb) && strings.HasSuffix(c.User.Username, user) && ref.Resource == of.resource && ref.Name == of.name &&
			(of.namespace == "" || ref.Namespace == of.namespace) && (of.subresource == "" || ref.Subresource == sub) {
			found = append(found, c)
		}
	}
	return found
}

// firstAfter is when the first call was answered that was answered at or after a time.
func (a Audit) firstAfter(t time.Time) time.Time {
	var first time.Time
	for _, c := range a {
		if !c.Answered.Before(t) && (first.IsZero() || c.Answered.Before(first)) {
			first = c.Answered
		}
	}
	return first
}

// lastUntil is when the last call was answered that was answered at or before a time; any time if it is zero.
func (a Audit) lastUntil(t time.Time) time.Time {
	var last time.Time
	for _, c := range a {
		if (t.IsZero() || !c.Answered.After(t)) && c.Answered.After(last) {
			last = c.Answered
		}
	}
	return last
}
