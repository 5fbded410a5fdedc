package diagnosis_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/test/kit/hostile"
)

// own are the fields of reports that no tenant, node or cloud can choose.
var own = []string{
	"Step.Name", "Step.State", "Step.Do", "Report.Cause", "Report.Who", "MissingObjects.Doubt", "Missing.Kind", "Orphan.Kind", "Restored.Kind", "DriverPod.Role",
	"Restored.Detach", "Restored.Mark", "RecoverOptions.OpenStack",
}

// printed is a report of a type with a text of others in each string.
func printedWith[T any](print func(io.Writer, T, int) error) func(*testing.T, string, int) string {
	return func(t *testing.T, text string, columns int) string {
		t.Helper()
		var report T
		hostile.Fill(&report, text, own...)
		if r, is := any(&report).(*diagnosis.Report); is {
			r.Cause, r.Time, r.Steps[0].State, r.Steps[0].Do = "quota.gigabytes", time.Unix(0, 0), diagnosis.Failed, []string{"read it: " + text}
		}
		if r, is := any(&report).(*diagnosis.NodeReport); is {
			r.Waiting[0].Steps[0].State = diagnosis.Failed
		}
		if r, is := any(&report).(*diagnosis.Recovery); is {
			r.Objects[0].Kind, r.LeftOut[0].Kind = "volume", "volume"
		}
		var out strings.Builder
		if err := print(&out, report, columns); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
}

// Words that a tenant, a node or a cloud chose begin no row of a terminal as those of the report do, whatever their letters.
func TestNoTextOfOthersMakesARowOfAReport(t *testing.T) {
	reports := map[string]func(*testing.T, string, int) string{
		"volume": printedWith(diagnosis.Print), "node": printedWith(diagnosis.PrintNode), "lost": printedWith(diagnosis.PrintMissing),
		"orphans": printedWith(diagnosis.PrintOrphans), "version": printedWith(diagnosis.PrintDriverPods), "operations": printedWith(diagnosis.PrintOperations),
		"recover": printedWith(diagnosis.PrintRecovery), "recover as a table": printedWith(diagnosis.PrintRecoveryTable),
		"list": printedWith(func(out io.Writer, l diagnosis.Listing, columns int) error {
			return diagnosis.PrintList(out, l, nil, columns)
		}),
	}
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range hostile.Texts() {
				hostile.Check(t, name, func(columns int) string { return report(t, text, columns) })
			}
		})
	}
}
