package errortable

import (
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var tableFile = filepath.Join("testdata", "table.txt")

// cell is one error that an RPC can end with: its kind, and whether the RPC may have changed the cloud before.
type cell struct {
	rpc, kind string
	written   bool
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %s", c.rpc, c.kind, c.when())
}

func (c cell) when() string {
	if c.written {
		return "after"
	}
	return "before"
}

// documented is the answer of a cell and the source of that answer.
type documented struct{ code, source string }

// If a source is a condition of the CSI specification, the specification has that condition for the RPC, with that code.
func TestTheTableCitesConditionsThatTheSpecificationHas(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/container-storage-interface/spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := testfile.Text(t, filepath.Join(strings.TrimSpace(string(dir)), "spec.md"))
	upper := regexp.MustCompile(`([a-z])([A-Z])`)
	cited := 0
	for c, d := range readTable(t) {
		rpc, condition, is := strings.Cut(strings.TrimPrefix(d.source, "CSI "), " Errors, ")
		if !is {
			continue
		}
		cited++
		condition, _, _ = strings.Cut(condition, ";")
		_, section, _ := strings.Cut(text, "##### "+rpc+" Errors\n")
		section, _, _ = strings.Cut(section, "\n#")
		code := strings.ToUpper(upper.ReplaceAllString(d.code, "${1}_${2}"))
		has := false
		for line := range strings.Lines(strings.ReplaceAll(section, "`", "")) {
			has = has || strings.HasPrefix(strings.ToLower(line), "| "+condition+" |") && strings.Contains(line, code)
		}
		if !has || rpc != c.rpc {
			t.Errorf("%v: the specification does not answer %s to %q of %s", c, code, condition, rpc)
		}
	}
	if cited < 15 {
		t.Errorf("only %d cells cite the specification", cited)
	}
}

type table map[cell]documented

// readTable reads the table: RPC, kind, before or after, code, source, separated by tabs.
func readTable(t *testing.T) table {
	t.Helper()
	all := table{}
	text := testfile.Text(t, tableFile)
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 5 || !slices.Contains([]string{"before", "after"}, fields[2]) || fields[4] == "" && !*update {
			t.Fatalf("%s:%d: want RPC, KIND, before or after, CODE and SOURCE, separated by tabs", tableFile, n+1)
		}
		c := cell{fields[0], fields[1], fields[2] == "after"}
		if _, twice := all[c]; twice {
			t.Fatalf("%s:%d: %v is there twice", tableFile, n+1, c)
		}
		all[c] = documented{fields[3], fields[4]}
	}
	return all
}

// writeTable writes the reached cells. It keeps their sources; new cells have no source.
func writeTable(t *testing.T, old table, r *reached) {
	t.Helper()
	var order []string
	for _, s := range scenarios {
		order = append(order, s.rpc)
	}
	var kinds []string
	for k := range volume.KindCount {
		kinds = append(kinds, k.String())
	}
	cells := slices.SortedFunc(maps.Keys(r.cells), func(a, b cell) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.rpc), slices.Index(order, b.rpc)),
			cmp.Compare(slices.Index(kinds, a.kind), slices.Index(kinds, b.kind)), -cmp.Compare(a.when(), b.when()))
	})
	text := testfile.Text(t, tableFile)
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			b.WriteString(line + "\n")
		}
	}
	for _, c := range cells {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", c.rpc, c.kind, c.when(), r.cells[c], old[c].source)
		t.Logf("%v: %s by %s", c, r.cells[c], r.how[c])
	}
	testfile.Write(t, tableFile, b.String(), 0o600)
}
