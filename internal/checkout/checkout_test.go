package checkout

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The checkout of a path is the working directory, and the work tree of Git of both, however each is named.
func TestNoLinkOfACheckoutLeadsOut(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"repo/.git", "repo/sub", "repo/other", "plain/sub", "outside/dir", "second/.git", "second/dir"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "outside/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"repo/out": "../outside", "repo/file": "../outside/file", "repo/sub/in": "../other", "plain/out": "../outside", "name": "repo", "plainname": "plain", "repo/gone": "../nothing", "repo/second": "../second",
	} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		in, path string
		refused  bool
	}{
		{in: "repo", path: "out/dir", refused: true},
		{in: "repo", path: "./out/new/file", refused: true},
		{in: "repo", path: "sub/../file", refused: true},
		{in: "repo", path: "sub/in/file"},
		{in: "repo", path: "../outside/file"},
		{in: "repo/sub", path: "../file", refused: true},
		{in: "repo/sub", path: "../out/dir", refused: true},
		{in: "repo/sub", path: "/repo/out", refused: true},
		{in: "repo/sub", path: "../other/file"},
		{in: "repo/sub", path: "in/file", refused: true},
		{in: "outside", path: "/repo/out/dir", refused: true},
		{in: "outside", path: "/repo/file", refused: true},
		{in: "outside", path: "/name/file", refused: true},
		{in: "outside", path: "/name/sub/file"},
		{in: "outside", path: "../repo/file", refused: true},
		{in: "", path: "repo/second/dir/file", refused: true},
		{in: "outside", path: "/repo/second/file", refused: true},
		{in: "outside", path: "/second/dir/file"},
		{in: "name", path: "/repo/file", refused: true},
		{in: "name/sub", path: "../file", refused: true},
		{in: "plain", path: "out/dir", refused: true},
		{in: "plain", path: "/plainname/out/dir", refused: true},
		{in: "plainname", path: "/plain/out/dir", refused: true},
		{in: "plain/sub", path: "../out/dir"}, // nothing says that it is one checkout
		{in: "outside", path: "/plain/out/dir"},
		{in: "/", path: "/plain/out"},
	} {
		if t.Chdir("/"); tc.in != "/" {
			t.Chdir(filepath.Join(base, tc.in))
		}
		path := tc.path
		if filepath.IsAbs(path) {
			path = base + path
		}
		if err := CheckLinks(path); errors.Is(err, ErrLeadsOut) != tc.refused || err != nil && !tc.refused {
			t.Errorf("%s in %s: %v", tc.path, tc.in, err)
		}
	}
}

func TestTheOutermostCheckoutOfAPath(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "repo/.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("repo", filepath.Join(base, "name")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ in, path, top, below string }{
		{in: "repo", path: "new/bundle", top: "/repo", below: "new/bundle"},
		{in: "", path: "repo/new/bundle", below: "repo/new/bundle"},
		{in: "/", path: "/name/new/bundle", top: "/name", below: "new/bundle"},
		{in: "/", path: "/elsewhere"},
	} {
		if t.Chdir("/"); tc.in != "/" {
			t.Chdir(filepath.Join(base, tc.in))
		}
		path := tc.path
		if filepath.IsAbs(path) {
			path = base + path
		}
		top, below, err := Top(path)
		if want := base + tc.top; err != nil || below != tc.below || top != want && (below != "" || top != "") {
			t.Errorf("%s in %s: %s, %s, %v", tc.path, tc.in, top, below, err)
		}
	}
}
