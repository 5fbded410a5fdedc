package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAPackageAboveItsBudgetIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.txt")
	testfile.Write(t, path, "# why\na/b\t40\tthirty clouds\n", 0o600)
	budgets, err := readBudgets(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readUsage(strings.NewReader("/top/c\t76000000000\n/top/a/b\t119000000000\n/top/d\t1000000000\n"), "/top")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if diff := cmp.Diff([]string{"c (76 s of 25)"}, exceeded(all, budgets, &out)); diff != "" {
		t.Error(diff)
	}
	want := ` 119.0 s of processor time  a/b
WARNING: above its budget of processor time: a/b (119 s of 40)
  76.0 s of processor time  c
WARNING: above its budget of processor time: c (76 s of 25)
   1.0 s of processor time  d
 196.0 s in all
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"a\t40\t\n", "a\tforty\twhy\n", "a 40 why\n"} {
		testfile.Write(t, path, line, 0o600)
		if _, err := readBudgets(path); err == nil {
			t.Errorf("want an error for %q", line)
		}
	}
}

// A test binary is what go test starts: its directory and its exit code are those of the package.
func TestABinaryIsMeasuredWithItsExitCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	t.Setenv(usageFile, file)
	if code := runBinary([]string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"}); code != 3 {
		t.Errorf("want exit code 3, got %d", code)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readUsage(in, filepath.Dir(here))
	if err != nil || len(all) != 1 || all[0].dir != "gate" || all[0].cpu <= 0 || all[0].cpu > time.Minute {
		t.Errorf("%+v, %v", all, err)
	}
}
