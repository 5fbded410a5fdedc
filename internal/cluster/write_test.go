package cluster

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestDataIsAppliedUnderTheNameOfItsManager(t *testing.T) {
	var asked testenv.Asked
	var status atomic.Int32
	status.Store(http.StatusOK)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked.Add(r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(body))
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{"message": "no"}`)
	})
	if err := c.ApplyData(t.Context(), "ns", "result", "me", map[string]string{"a": "b"}); err != nil {
		t.Error(err)
	}
	want := `PATCH /prefix/api/v1/namespaces/ns/configmaps/result?fieldManager=me&force=true application/apply-patch+yaml ` +
		`{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"result","namespace":"ns"}}`
	if diff := cmp.Diff([]string{want}, asked.All()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status.Store(http.StatusForbidden)
	if err := c.ApplyData(t.Context(), "ns", "result", "me", nil); !errors.Is(err, ErrDenied) || !strings.HasPrefix(err.Error(), "PATCH /api/v1/namespaces/ns/configmaps/result of the cluster") {
		t.Errorf("want an error of the right that is missing, got %v", err)
	}
}

// kubectl cinder and doctor promise to change nothing.
func TestOnlyTheDriftCheckWritesIntoACluster(t *testing.T) {
	callers := []string{}
	root := "../.."
	for _, dir := range []string{"cmd", "internal", "generator", "driver"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), ".ApplyData(") {
				callers = append(callers, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(callers, " "); got != "generator/cli/status.go" {
		t.Errorf("want generator/cli/status.go alone, got %s", got)
	}
}

func TestTheClusterOfThePodCountsOnlyForWhoAsksForIt(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	if _, err := Connect(Source{}); !errors.Is(err, ErrNoKubeconfig) || err.Error() != ErrNoKubeconfig.Error() {
		t.Errorf("want no cluster, got %v", err)
	}
	// This is no pod, so the token is missing. The error shows that it was looked for.
	if _, err := Connect(Source{Pod: true}); !errors.Is(err, ErrNoKubeconfig) || !strings.Contains(err.Error(), "no pod with a token") {
		t.Errorf("want the token to be missing, got %v", err)
	}
}
