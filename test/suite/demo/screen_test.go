package main

import (
	"strings"
	"testing"
)

func TestAWarningIsPrintedOnceWithItsNumber(t *testing.T) {
	var printed strings.Builder
	s := &screen{to: &printed}
	for range 3 {
		s.warn([]byte("Warning: cloud sim: the connection to http://x is not encrypted\nWarning: a is not set\nx: 19 created\n"))
	}
	s.warn([]byte("Warning: b\n"))
	s.warnings()
	if want := "warning in 3 bundles: a is not set\nwarning in 1 bundles: b\n"; printed.String() != want {
		t.Errorf("want %q, got %q", want, printed.String())
	}
}

func TestAScreenThatIsTooLongIsAnError(t *testing.T) {
	for _, tt := range []struct {
		lines   int
		verbose bool
		fits    bool
	}{{most, false, true}, {most + 1, false, false}, {most + 1, true, true}} {
		var printed strings.Builder
		s := &screen{to: &printed, verbose: tt.verbose}
		s.printf("%s", strings.Repeat("line\n", tt.lines))
		if err := s.fits(); (err == nil) != tt.fits {
			t.Errorf("%d lines, verbose %t: got %v", tt.lines, tt.verbose, err)
		}
	}
}

func TestOnlyDecisionsOfTheCloudAreShown(t *testing.T) {
	got, err := byTheCloud([]byte(`{"decisions": [{"id": "a", "source": "inferred", "reason": "one"}, {"id": "b", "source": "default", "reason": "two"}]}`))
	if err != nil || len(got) != 1 || got[0].ID != "a" || got[0].Reason != "one" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := byTheCloud([]byte("{}")); err == nil {
		t.Error("want an error for a plan without a decision of the cloud")
	}
}

func TestTheExcerptOfAnInventoryHasZonesAndTypes(t *testing.T) {
	got := excerpt("Cloud x\n\nZONE COMPUTE\naz1 yes\n\nVOLUME TYPE\nfast\n\nRESOURCE LIMIT\nvolumes 1\n")
	if want := "ZONE COMPUTE\naz1 yes\nVOLUME TYPE\nfast\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
