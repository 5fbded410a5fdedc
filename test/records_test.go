package test_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the sums of the records")

const recordSums = "records.txt"

var figure = regexp.MustCompile(`[0-9]+`)

// A record is of a run that nobody repeats for a test. Its figures may change only together with their sum, so that a slip of the hand is seen. Words
// may change.
func TestTheFiguresOfTheRecordsAreThoseOfTheirRuns(t *testing.T) {
	var got []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{"RESULTS.md", "NODE.md"}, entry.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		got = append(got, fmt.Sprintf("%x  %s", sha256.Sum256([]byte(strings.Join(figure.FindAllString(string(text), -1), " "))), strings.TrimPrefix(filepath.ToSlash(path), "../")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		testfile.Write(t, recordSums, strings.Join(got, "\n")+"\n", 0o644)
	}
	want := testfile.Text(t, recordSums)
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), got); diff != "" || len(got) < 10 {
		t.Errorf("figures of a record changed. If a run wrote them, or something that is no figure of a run has a digit: go test ./test -run Record -update\n%s", diff)
	}
}
