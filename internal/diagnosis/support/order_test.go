package support

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func TestTheLogsOfPodsWithTroubleComeFirst(t *testing.T) {
	c := &collector{troubled: map[string]bool{"b": true}}
	pods := []diagnosis.DriverPod{
		{Role: "node", Pod: "quiet", Node: "a", Ready: true},
		{Role: "node", Pod: "restarted", Node: "a", Ready: true, Restarts: 1},
		{Role: "node", Pod: "restarted often", Node: "a", Ready: true, Restarts: 9},
		{Role: "node", Pod: "with a finding", Node: "b", Ready: true},
		{Role: "node", Pod: "not ready", Node: "a"},
		{Role: "controller", Pod: "controller", Ready: true},
	}
	c.order(pods)
	var got []string
	for _, p := range pods {
		got = append(got, p.Pod)
	}
	want := []string{"controller", "not ready", "with a finding", "restarted often", "restarted", "quiet"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
