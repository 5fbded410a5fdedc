package docs

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// copyScript is the script of the Job that copies between two claims, for two directories.
func copyScript(t *testing.T, from, to string) string {
	t.Helper()
	documents := yamlDocuments(testfile.Text(t, "how-to/copy-data.md"))
	i := slices.IndexFunc(documents, func(text string) bool { return strings.Contains(text, "\nkind: Job\n") })
	if i < 0 {
		t.Fatal("the page has no Job")
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(documents[i]), &job); err != nil {
		t.Fatal(err)
	}
	command := job.Spec.Template.Spec.Containers[0].Command
	if len(command) != 3 || command[0] != "bash" || command[1] != "-euc" {
		t.Fatalf("want a script of bash, got %q", command)
	}
	return strings.NewReplacer("/from", from, "/to", to).Replace(command[2])
}

// A copy that lacks something must fail: the page has people delete the original.
func TestTheJobOfThePageCopiesAndFindsADifference(t *testing.T) {
	for name, meanwhile := range map[string]string{
		"nothing else happens":                    "",
		"a byte differs":                          "printf X | dd of=/to/dir/file bs=1 seek=2 conv=notrunc status=none",
		"a file is missing":                       "rm '/to/a name with blanks'",
		"a file is too many":                      "touch /to/other",
		"a mode differs":                          "chmod 0700 /to/dir/file",
		"a link leads elsewhere":                  "ln -sfn other /to/link",
		"a directory without a file is not there": "rmdir /to/empty",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := filepath.Join(dir, "source"), filepath.Join(dir, "target")
			paths := strings.NewReplacer("/from", from, "/to", to)
			run := func(script string) (string, error) {
				out, err := exec.CommandContext(t.Context(), "bash", "-euc", script).CombinedOutput()
				return string(out), err
			}
			// A new ext4 has lost+found.
			if out, err := run(paths.Replace("mkdir -p /from/dir /from/empty /from/lost+found /to/lost+found; echo data > /from/dir/file; chmod 0640 /from/dir/file; " +
				"touch '/from/a name with blanks'; ln -s dir/file /from/link; ln /from/dir/file /from/hard; truncate -s 1M /from/sparse")); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			script := copyScript(t, from, to)
			copied, compared, found := strings.Cut(script, "sync\n")
			if !found {
				t.Fatalf("want sync between copy and comparison, got %s", script)
			}
			out, err := run(copied + paths.Replace(meanwhile) + "\n" + compared)
			if meanwhile == "" && (err != nil || !strings.Contains(out, "copied and compared")) {
				t.Errorf("want a copy, got %v\n%s", err, out)
			}
			if meanwhile != "" && err == nil {
				t.Errorf("want a difference, got none\n%s", out)
			}
		})
	}
}
