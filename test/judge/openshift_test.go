package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARunUnderOpenShiftsAdmissionHasEachStepOnce(t *testing.T) {
	const log = `some output
measured: openshift kustomize applied: no range, no Secret                              18.3 s
measured: openshift kustomize ten claims and pods at once                              195.5 s
measured: openshift helm      applied: no range, no Secret                              12.0 s
measured: openshift hosted    both planes installed                                    114.8 s
measured: openshift adopt     the operator has installed the built-in driver            65.1 s
measured: longest pause of a writing pod during the swap 0.16 s
`
	const want = `| step of a standalone bundle | by Kustomize | by Helm |
| --- | ---: | ---: |
| applied: no range, no Secret | 18.3 | 12.0 |
| ten claims and pods at once | 195.5 |  |

| bundle | step | seconds |
| --- | --- | ---: |
| hosted | both planes installed | 114.8 |
| adopt | the operator has installed the built-in driver | 65.1 |

| while | longest pause of a writing pod |
| --- | ---: |
| the swap | 0.16 |
`
	got, err := openShiftTables(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{"", log[:strings.Index(log, "measured: openshift hosted")]} {
		if _, err := openShiftTables(strings.NewReader(part)); err == nil {
			t.Errorf("the log of a part of the run is accepted:\n%s", part)
		}
	}
}
