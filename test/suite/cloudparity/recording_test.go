package cloudparity

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRecordingsHoldNothingOfTheCloudTheyWereMadeOn finds values that exist on one bed only, and secrets.
func TestRecordingsHoldNothingOfTheCloudTheyWereMadeOn(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	others, err := filepath.Glob("testdata/releases/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, others...)
	particular := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}|\b[0-9a-f]{32}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d|127\.0\.0\.1|localhost|parity-|[Pp]assword'|gAAAA`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := particular.Find(text); found != nil {
			t.Errorf("%s holds %q", file, found)
		}
	}
}
