package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	others "github.com/cinder-csi/cinder-csi/test/kit/hostile"
)

func TestWhatACloudsOperatorWroteCannotSteerTheTerminal(t *testing.T) {
	var out bytes.Buffer
	err := Inventory(&out, v1alpha1.Inventory{VolumeTypes: v1alpha1.Fact[[]v1alpha1.VolumeType]{
		State: v1alpha1.Known, Value: []v1alpha1.VolumeType{{Name: "a\x1b[2Jb", Description: "one\ntwo\tthree\r"}},
	}}, 120)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\r\t") || !strings.Contains(out.String(), `a\x1b[2Jb`) {
		t.Errorf("want no control characters, got %q", out.String())
	}
}

func TestEveryGapIsNamedWithItsReason(t *testing.T) {
	var out bytes.Buffer
	inv := v1alpha1.Inventory{
		Services:          v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known},
		Zones:             v1alpha1.Zones{Compute: v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Denied, Reason: "policy a"}, Volume: v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Failed, Reason: "HTTP 503"}},
		VolumeTypes:       v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Unsupported},
		Limits:            v1alpha1.Fact[v1alpha1.Limits]{State: v1alpha1.Known, Value: v1alpha1.Limits{Volumes: -1}},
		Quota:             v1alpha1.Fact[map[string]v1alpha1.Quota]{State: v1alpha1.Denied},
		GroupTypes:        v1alpha1.Fact[[]string]{State: v1alpha1.Known},
	}
	if err := Inventory(&out, inv, Width); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"compute zones denied (policy a)", "volume zones failed (HTTP 503)", "default volume type unsupported", "quota denied", "volumes unlimited"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q, got:\n%s", want, out.String())
		}
	}
	if strings.Contains(got, "limits known") {
		t.Errorf("want no gap where the value is known, got:\n%s", out.String())
	}
}

func TestAStreamThatFailsIsAnError(t *testing.T) {
	if err := Plan(broken{}, v1alpha1.Plan{}, "", Width); err == nil {
		t.Error("want the stream's error")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Words of a cloud make no row of a report, see internal/diagnosis.
func TestNoTextOfOthersMakesARowOfADoctor(t *testing.T) {
	for _, text := range others.Texts() {
		var r doctor.Report
		others.Fill(&r, "a finding: "+text, "Finding.ID", "Finding.Severity")
		others.Check(t, "doctor", func(columns int) string {
			var out strings.Builder
			if err := Doctor(&out, &r, columns); err != nil {
				t.Fatal(err)
			}
			return out.String()
		})
	}
}
