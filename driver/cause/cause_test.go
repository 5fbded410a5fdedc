package cause_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// constants are the IDs that the source of the package defines, by their name there.
func constants(t *testing.T) map[string]cause.ID {
	t.Helper()
	found := map[string]cause.ID{}
	for _, name := range []string{"driver.go", "claim.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				call, ok := spec.Values[0].(*ast.CallExpr)
				if !ok {
					return true
				}
				if text, ok := call.Args[0].(*ast.BasicLit); ok {
					id, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					found[spec.Names[0].Name] = cause.ID(id)
				}
			}
			return true
		})
	}
	return found
}

func TestEachCauseHasOneRow(t *testing.T) {
	all := constants(t)
	seen := map[cause.ID]bool{}
	for _, c := range cause.All() {
		if seen[c.ID] {
			t.Errorf("two rows for %s", c.ID)
		}
		seen[c.ID] = true
		if c.Means == "" || c.Do == "" || c.Who == "" || len(strings.Fields(c.Means)) > 25 || len(strings.Fields(c.Do)) > 25 {
			t.Errorf("%s: %+v", c.ID, c)
		}
		if c.Who == cause.Nobody && !c.Passes {
			t.Errorf("%s neither passes nor has an actor", c.ID)
		}
		if !regexp.MustCompile(`^([a-z]+\.[a-z]+(-[a-z]+)*|none)$`).MatchString(string(c.ID)) {
			t.Errorf("ID %q", c.ID)
		}
	}
	for name, id := range all {
		if !seen[id] {
			t.Errorf("%s has no row", name)
		}
	}
	if len(all) != len(seen) || len(all) < 100 {
		t.Errorf("%d constants, %d rows", len(all), len(seen))
	}
}

func TestTheCauseIsReadFromTheEndOfAMessage(t *testing.T) {
	for text, want := range map[string]cause.ID{
		cause.End("attach: volume v (request req-1)", cause.AttachReserved): cause.AttachReserved,
		"no cause": "", "": "",
		"an older driver [sic], [2001:db8::1] and [no.cause]":              "",
		"Cinder said [attach.limit] (request r) [quota.gigabytes]":         cause.QuotaGigabytes,
		"MountVolume.SetUp failed: rpc error: x [fs.read-only]\n":          cause.FsReadOnly,
		"only kubectl cinder finds this one, no driver says it [pod.none]": "",
	} {
		if got := cause.In(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSomebodyWhoMistypesAnIDGetsThoseOfItsGroup(t *testing.T) {
	if near := cause.Near("attach.resrved"); len(near) < 5 {
		t.Errorf("%v", near)
	}
	if near := cause.Near("volume.elsewhere"); len(near) < 2 {
		t.Errorf("%v", near)
	}
}

// Anybody who may write an event chooses its text, and the cause at its end. So no advice is to do what a text says.
func TestNoAdviceIsToFollowAText(t *testing.T) {
	for _, c := range cause.All() {
		for _, phrase := range []string{"of the message", "follow the message"} {
			if strings.Contains(c.Do, phrase) {
				t.Errorf("%s: %s", c.ID, c.Do)
			}
		}
	}
}
