package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAProgramThatFailsIsAnOutcomeAndOneThatIsNotThereAnError(t *testing.T) {
	t.Parallel()
	var o Outcome
	if err := (&Agent{}).Run(Command{Args: []string{"sh", "-c", "cat; echo $A >&2; exit 3"}, Env: []string{"A=b"}, Input: []byte("a")}, &o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Outcome{Code: 3, Output: []byte("ab\n")}, o); diff != "" {
		t.Error(diff)
	}
	if err := (&Agent{}).Run(Command{Args: []string{"/no/such/program"}}, &o); err == nil {
		t.Error("want an error for a program that is not there")
	}
}

func TestAKernelsEventIsItsFields(t *testing.T) {
	t.Parallel()
	got := parse([]byte("add@/devices/vda\x00ACTION=add\x00DEVNAME=vda\x00"))
	if diff := cmp.Diff(map[string]string{"ACTION": "add", "DEVNAME": "vda"}, got); diff != "" {
		t.Error(diff)
	}
}
