//go:build apiserver

package apiserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestTheScheduleOfThePageKeepsTheNewestSnapshots runs the script of the CronJob with the rights of its account. No snapshot is ever ready here, so a
// run that waits for one deletes nothing; the other runs leave the wait out.
func TestTheScheduleOfThePageKeepsTheNewestSnapshots(t *testing.T) {
	s := startServer(t)
	var job batchv1.CronJob
	for _, document := range s.documents(t, "how-to/scheduled-snapshots.md") {
		s.Write(t, "object.yaml", document)
		s.run(t, "kubectl", "apply", "-f", "object.yaml")
		if strings.Contains(document, "\nkind: CronJob\n") {
			testenv.Must(t, yaml.UnmarshalStrict([]byte(document), &job))
		}
	}
	container := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	account := "system:serviceaccount:default:" + job.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName
	as := filepath.Join(s.Dir, "as")
	testenv.Must(t, os.Mkdir(as, 0o755))
	testfile.Write(t, filepath.Join(as, "kubectl"), "#!/bin/sh\nexec "+filepath.Join(s.Repo, "bin/tools/kubectl")+" --as="+account+" \"$@\"\n", 0o755)
	script := "export PATH=" + as + ":$PATH\n"
	for _, e := range container.Env {
		value := e.Value
		if e.Name == "KEEP" {
			value = "2"
		}
		script += "export " + e.Name + "=" + value + "\n"
	}
	script += container.Command[2]
	lines := strings.Split(script, "\n")
	without := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "kubectl wait ") })
	if len(without) != len(lines)-1 {
		t.Fatalf("want one line that waits in\n%s", script)
	}
	kept := func() []string {
		t.Helper()
		return strings.Fields(s.run(t, "kubectl", "get", "volumesnapshots", "--output", "name"))
	}
	for range 4 {
		s.run(t, "sh", "-euc", strings.Join(without, "\n"))
	}
	before := kept()
	if len(before) != 2 {
		t.Errorf("want the two newest snapshots, got %q", before)
	}
	if _, _, err := s.Try("sh", "-euc", strings.ReplaceAll(script, "--timeout=6h", "--timeout=1s")); err == nil {
		t.Error("want a failed run when the snapshot is not ready")
	}
	if after := kept(); len(after) != 3 || len(before) == 2 && (!slices.Contains(after, before[0]) || !slices.Contains(after, before[1])) {
		t.Errorf("want %q and the new snapshot, got %q", before, after)
	}
	if _, messages, err := s.Try("kubectl", "--as="+account, "get", "secrets"); err == nil || !strings.Contains(messages, "forbidden") {
		t.Errorf("want an account that reads no Secret, got %v: %s", err, messages)
	}
}
