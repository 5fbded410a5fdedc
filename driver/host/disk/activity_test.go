package disk

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestADiskWithRequestsInFlightAnswersWhenItCompletesOne(t *testing.T) {
	t.Parallel()
	const (
		idle    = "  10 0 80 5  20 0 160 9  0 12 14  3 0 24 1  4 2\n"
		busy    = "  10 0 80 5  20 0 160 9 64 12 14  3 0 24 1  4 2\n"
		read    = "  11 0 88 5  20 0 160 9 64 12 14  3 0 24 1  4 2\n"
		wrote   = "  10 0 80 5  21 0 168 9 64 12 14  3 0 24 1  4 2\n"
		dropped = "  10 0 80 5  20 0 160 9 64 12 14  4 0 32 1  4 2\n"
		flushed = "  10 0 80 5  20 0 160 9 64 12 14  3 0 24 1  5 2\n"
		older   = "  10 0 80 5  20 0 160 9 64 12 14  3 0 24 1\n"      // before Linux 5.5
		named   = "  11 0 80 5  20 0 160 9 64 12 14  3 0 24 1  4 2\n" // QEMU reports the serial by itself
		short   = "  10 0 80 5  20 0 160 9 64 12 14\n"                // before Linux 4.18
	)
	for name, c := range map[string]struct {
		before, after string
		answers       bool
		in            time.Duration // when it returns; after two minutes the disk completes a write
	}{
		"idle":                     {idle, idle, false, 0},
		"no counters":              {"", "", false, 0},
		"a read":                   {busy, read, true, time.Minute},
		"a write":                  {busy, wrote, true, time.Minute},
		"a discard":                {busy, dropped, true, time.Minute},
		"a flush":                  {busy, flushed, true, time.Minute},
		"all requests were undone": {busy, idle, false, time.Minute},
		"its serial was read":      {busy, named, true, 2 * time.Minute},
		"the disk went":            {busy, "", false, time.Minute},
		"no column of flushes":     {older, read, true, time.Minute},
		"few columns":              {short, read, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, "block", "vdb", "stat")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			set := func(content string) {
				testfile.Write(t, file, content, 0o600)
			}
			set(c.before)
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				time.AfterFunc(time.Minute-time.Millisecond, func() { set(c.after) })
				defer time.AfterFunc(2*time.Minute-time.Millisecond, func() { set(wrote) }).Stop()
				got := NewFinder(Options{SysRoot: root}).AwaitProgress("vdb")
				if took := time.Since(begun); got != c.answers || took != c.in {
					t.Errorf("want %t after %s, got %t after %s", c.answers, c.in, got, took)
				}
			})
		})
	}
}
