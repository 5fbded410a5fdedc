package command_test

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

func TestACauseIsExplainedByItsIDOrByAMessage(t *testing.T) {
	row, _ := cause.Find(cause.AttachReserved)
	for _, named := range []string{
		"attach.reserved", "[attach.reserved]",
		`AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = FailedPrecondition desc = attach: volume v (request req-1) [attach.reserved]`,
	} {
		stdout, stderr, code, _ := plugin(t, nil, "explain", named)
		if code != 0 || stderr != "" || !strings.Contains(stdout, row.Means) || !strings.Contains(stdout, row.Do) || !strings.Contains(stdout, string(row.Who)) {
			t.Errorf("%s: code %d, %s%s", named, code, stdout, stderr)
		}
	}
	if stdout, _, code, _ := plugin(t, nil, "explain"); code != 0 || strings.Count(stdout, "\n") != len(cause.All()) {
		t.Errorf("code %d, %d lines for %d causes", code, strings.Count(stdout, "\n"), len(cause.All()))
	}
	if _, stderr, code, _ := plugin(t, nil, "explain", "attach.resrved"); code != 64 || !strings.Contains(stderr, "attach.reserved") {
		t.Errorf("mistyped: code %d, %s", code, stderr)
	}
	if _, stderr, code, _ := plugin(t, nil, "explain", "disk is full"); code != 64 || !strings.Contains(stderr, "lists all") {
		t.Errorf("no cause: code %d, %s", code, stderr)
	}
}
