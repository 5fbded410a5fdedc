//go:build apiserver

package apiserver

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var matrix = flag.String("matrix", "", "directory for the record of the version of the API server; test/judge reads it")

// result is what became of a bundle.
type result struct {
	Bundle  string `json:"bundle"`
	Passed  bool   `json:"passed"`
	Refused string `json:"refused,omitempty"` // what the generator said; then nothing was applied
}

// minor is the minor version of the API server.
func (s *server) minor(t *testing.T) (version string, minor int) {
	t.Helper()
	var v struct{ GitVersion, Minor string }
	testenv.Must(t, json.Unmarshal([]byte(s.run(t, "kubectl", "get", "--raw=/version")), &v))
	minor = testenv.Value(strconv.Atoi(strings.TrimSuffix(v.Minor, "+")))(t)
	return v.GitVersion, minor
}

var kubernetesVersion = regexp.MustCompile(`(?m)^  kubernetesVersion: .*\n`)

// defaultMinor is the version of a configuration that names none.
const defaultMinor = 32

// generateFor generates a bundle for the API server that runs. A configuration for a later version gets the version of the server. What the
// server lacks is then left out, or the generator refuses it and says so.
func (s *server) generateFor(t *testing.T, name, target, format, config string) (_ installation, refusal string) {
	t.Helper()
	text := "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: example}\nspec:\n"
	wanted := defaultMinor
	if config != "" {
		content := testfile.Text(t, filepath.Join(s.Repo, "examples/distribution", config+".yaml"))
		text = content
		if line := kubernetesVersion.FindString(text); line != "" {
			_, _ = fmt.Sscanf(strings.TrimSpace(line), `kubernetesVersion: "1.%d"`, &wanted)
		}
	}
	_, minor := s.minor(t)
	if minor >= wanted {
		return s.generate(t, name, target, format, config), ""
	}
	text = strings.Replace(kubernetesVersion.ReplaceAllString(text, ""), "\nspec:\n", fmt.Sprintf("\nspec:\n  kubernetesVersion: \"1.%d\"\n", minor), 1)
	file, dir := name+".yaml", s.Path(name)
	s.Write(t, file, text)
	_, messages, err := s.Try(generate(dir, target, format, s.Path(file))...)
	if err != nil {
		if !strings.Contains(messages, "Kubernetes") {
			t.Fatalf("the generator fails, and does not say that the version is the reason: %s", messages)
		}
		t.Logf("refused: %s", messages)
		return installation{}, strings.TrimSpace(messages)
	}
	return s.installation(t, dir), ""
}

// record is what became of the bundles on one version.
type record struct {
	Version string   `json:"version"`
	Bundles []result `json:"bundles"`
}

// keep puts the result of a bundle into the record of this version, in place of an earlier one.
func (s *server) keep(t *testing.T, r result) {
	t.Helper()
	if *matrix == "" {
		return
	}
	version, _ := s.minor(t)
	file, kept := filepath.Join(*matrix, version+".json"), record{Version: version}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	kept.Bundles = append(slices.DeleteFunc(kept.Bundles, func(old result) bool { return old.Bundle == r.Bundle }), r)
	text, err := json.MarshalIndent(kept, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
