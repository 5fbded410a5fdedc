package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

func TestEveryPageIsThatOfTheRecords(t *testing.T) {
	for _, j := range judged {
		parts, err := j.parts("../..")
		if err != nil {
			t.Fatal(err)
		}
		page.Hold(t, filepath.Join("../..", j.page), parts, false, "go run ./test/judge "+j.command)
	}
}

func TestAnUnknownJudgeIsNamedWithThoseThatThereAre(t *testing.T) {
	if err := run("cloud", t.TempDir(), &flags{}); err == nil || !strings.Contains(err.Error(), "clouds, report, scale, versions") {
		t.Errorf("got %v", err)
	}
}
