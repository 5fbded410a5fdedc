package cloudparity

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestRecordingsHoldNothingOfTheCloudTheyWereMadeOn finds values that exist on one bed only, and secrets.
func TestRecordingsHoldNothingOfTheCloudTheyWereMadeOn(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	others := testenv.Value(filepath.Glob("testdata/releases/*/*.json"))(t)
	files = append(files, others...)
	particular := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}|\b[0-9a-f]{32}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d|127\.0\.0\.1|localhost|parity-|[Pp]assword'|gAAAA`)
	for _, file := range files {
		text := testfile.Read(t, file)
		if found := particular.Find(text); found != nil {
			t.Errorf("%s holds %q", file, found)
		}
	}
}
