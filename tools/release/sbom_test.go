package release

import (
	"bytes"
	"encoding/json"
	"flag"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	spdxjson "github.com/spdx/tools-golang/json"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/tools/image"
)

var update = flag.Bool("update", false, "write the goldens")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		testfile.Write(t, name, got, 0o644)
	}
	want := testfile.Read(t, name)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var info = &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
	{Path: "example.com/a-b", Version: "v1.0.0"},
	{Path: "example.com/a_b", Version: "v0.0.1", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.0"}},
}}

func document() *bom {
	b := newBOM("tool-linux-amd64", "v1.2.3", "00ff", noon)
	b.addProgram(b.root("tool", "v1.2.3", "pkg:golang/example.com/tool@v1.2.3", "APPLICATION"), info, map[string]string{"example.com/fork": "MIT"})
	return b
}

func TestAnSBOMNamesTheModulesOfAProgram(t *testing.T) {
	t.Parallel()
	r := &release{dir: t.TempDir()}
	if err := r.writeBOM(document()); err != nil {
		t.Fatal(err)
	}
	content := testfile.Read(t, r.path("sbom/tool-linux-amd64.spdx.json"))
	golden(t, "tool.spdx.json", content)
	if _, err := spdxjson.Read(bytes.NewReader(content)); err != nil {
		t.Errorf("SPDX's own reader refuses it: %v", err)
	}
}

func TestEachPackageOfAnSBOMHasItsOwnIdentifier(t *testing.T) {
	t.Parallel()
	b := document()
	b.add("go", "example.com/a b", "v1", "", noAssertion)
	seen := map[string]string{}
	for _, p := range b.Packages {
		id := string(p.PackageSPDXIdentifier)
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s have the identifier %s", other, p.PackageName, id)
		}
		if notID.MatchString(id) {
			t.Errorf("%s: the identifier %q has a character that SPDX forbids", p.PackageName, id)
		}
		seen[id] = p.PackageName
	}
}

func TestADebianPackageHasItsPackageURL(t *testing.T) {
	t.Parallel()
	got := debianURL(image.Package{Name: "e2fsprogs", Version: "1:1.47.0-2+b2", Architecture: "arm64"})
	if want := "pkg:deb/debian/e2fsprogs@1%3A1.47.0-2%2Bb2?arch=arm64"; want != got {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestProvenanceNamesCommitGoAndDebianPackagesAndSaysThatItIsUnsigned(t *testing.T) {
	t.Parallel()
	r := &release{Options: Options{Version: "v1.2.3"}, commit: "0123", time: noon, goVersion: "go1.26.0"}
	r.uses([]image.Package{{Name: "xfsprogs", Version: "6", Architecture: "amd64", SHA256: "02"}, {Name: "dash", Version: "1", Architecture: "amd64", SHA256: "01"}})
	r.uses([]image.Package{{Name: "dash", Version: "1", Architecture: "amd64", SHA256: "01"}})
	content, err := json.MarshalIndent(r.statement([]digest{{"bin/tool", "00ff"}}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "provenance.json", append(content, '\n'))
}
