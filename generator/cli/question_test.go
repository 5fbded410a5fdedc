package cli

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// The names of some decisions are nearly those of kinds.
func TestEveryDecisionCanBeExplainedByItsID(t *testing.T) {
	ids := plan.IDs.Values()
	if len(ids) < 40 {
		t.Fatalf("want all decisions, got %d", len(ids))
	}
	for id := range ids {
		for _, args := range [][]string{{id}, {id, "out"}} {
			if q, err := parseQuestion(args); err != nil || !q.isDecision || q.object != id {
				t.Errorf("explain %v: want the decision, got %+v, %v", args, q, err)
			}
		}
	}
}
