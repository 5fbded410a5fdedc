package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/judge/rights"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// mainAccount has most of the roles.
const mainAccount = "cinder-csi-controller"

// roleRow is one resource in the rules of a role.
type roleRow struct{ account, role, target string }

// emittedRights are the verbs in every role that a bundle can have, and where the role comes from.
func emittedRights(t *testing.T) (verbs map[roleRow][]rights.Grant, origin map[string]string) {
	t.Helper()
	verbs, origin = map[roleRow][]rights.Grant{}, map[string]string{}
	add := func(from string, objects []verify.Object) {
		for _, g := range grantsOf(t, from, objects) {
			_, account, _ := strings.Cut(g.Account, "/")
			row := roleRow{account, g.Role, g.Target()}
			if !slices.ContainsFunc(verbs[row], func(other rights.Grant) bool { return other.Right == g.Right }) {
				verbs[row] = append(verbs[row], g)
			}
			origin[g.Role] = cmp.Or(origin[g.Role], from)
		}
	}
	for _, r := range renderings {
		add(r.from, r.objects(t))
	}
	return verbs, origin
}

// rendering is the chart with some values, which have the rights that the renderings before it do not have.
type rendering struct {
	from   string
	values string
}

const image = "images: {registry: registry.example}\n"

var renderings = []rendering{
	{"always", "snapshots: {enabled: false}\n"},
	{"`snapshots.enabled`", ""},
	{"`driver.capacity`", "driver: {capacity: true}\n"},
	{"`nodeLifecycle.startupTaint`", "nodeLifecycle: {startupTaint: true}\n"},
	{"`nodeLifecycle.drainHook`", "nodeLifecycle: {drainHook: true}\n"},
	{"`driftCheck.schedule`", "driftCheck: {schedule: '@daily', distribution: a, plan: b}\n"},
	{"OpenShift", "target: standalone\n"},
	{"`monitoring.platform`", "target: standalone\nmonitoring: {platform: true}\n"},
	{"`monitoring.tls`", "target: standalone\nmonitoring: {kind: ServiceMonitor, tls: {enabled: true}}\n"},
	{"OpenShift", "target: hypershift\nplane: management\n"},
	{"OpenShift", "target: hypershift\nplane: guest\ndriver: {capacity: true}\n"},
}

func (r rendering) objects(t *testing.T) []verify.Object {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(image+r.values), &values); err != nil {
		t.Fatal(err)
	}
	files, err := verify.Chart(values, true)
	if err != nil {
		t.Fatalf("%s: %v", r.from, err)
	}
	var all []verify.Object
	for name, text := range files {
		if path.Ext(name) != ".yaml" {
			continue
		}
		objects, err := verify.Decode([]byte(text), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, objects...)
	}
	return all
}

func grantsOf(t *testing.T, from string, objects []verify.Object) []rights.Grant {
	t.Helper()
	var list struct {
		Items []map[string]any `json:"items"`
	}
	for _, o := range objects {
		if strings.Contains(o.Kind(), "Role") {
			list.Items = append(list.Items, o.Fields)
		}
	}
	if len(list.Items) == 0 {
		return nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	// On OpenShift the names begin with the name of its driver. The page lists each role once, with the name that it has elsewhere.
	grants, err := rights.Granted([]byte(strings.ReplaceAll(string(text), `"cinder-csi.io-`, `"cinder-csi-`)))
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	return grants
}

// reasonsIn reads a list of reasons.
func reasonsIn(t *testing.T, file string) map[string]string {
	t.Helper()
	text := testfile.Text(t, file)
	reasons, err := rights.ParseReasons(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return reasons
}

// rightsTable has a row for each resource of each role.
func rightsTable(t *testing.T) string {
	t.Helper()
	const whyFile = "testdata/rights.txt"
	emitted, origin := emittedRights(t)
	why := reasonsIn(t, whyFile)
	checkUnused(t, emitted, reasonsIn(t, "../test/suite/cluster/unused-rights.txt"))
	rows := slices.SortedFunc(maps.Keys(emitted), func(a, b roleRow) int {
		return cmp.Or(strings.Compare(a.account, b.account), strings.Compare(a.role, b.role), strings.Compare(a.target, b.target))
	})
	type line struct{ role, in, verbs, why string }
	var lines []line
	targets := map[line][]string{} // resources of one role with the same verbs and the same reason share a line
	for _, row := range rows {
		key := row.role + " " + row.target
		if why[key] == "" {
			t.Errorf("%s has no line for %q", whyFile, key)
		}
		reason := why[key]
		if program, does, _ := strings.Cut(reason, " "); strings.HasPrefix(row.role, "cinder-"+program) { // the role names it
			reason = does
		}
		l := line{row.role, strings.TrimPrefix(origin[row.role], "always"), verbsOf(emitted[row]), reason}
		if row.account != mainAccount {
			l.role += " of " + row.account
		}
		if targets[l] == nil {
			lines = append(lines, l)
		}
		targets[l] = append(targets[l], "`"+row.target+"`")
		delete(why, key)
	}
	var b strings.Builder
	b.WriteString("| role | in | resource | verbs | why: the program of the role |\n| --- | --- | --- | --- | --- |\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", l.role, l.in, strings.Join(targets[l], ", "), l.verbs, l.why)
	}
	for _, key := range slices.Sorted(maps.Keys(why)) {
		t.Errorf("%s has a line for %q, which no role has", whyFile, key)
	}
	return b.String()
}

// checkUnused fails for a reason that names no right: somebody removed the right and not its reason.
func checkUnused(t *testing.T, emitted map[roleRow][]rights.Grant, unused map[string]string) {
	t.Helper()
	for _, grants := range emitted {
		for _, g := range grants {
			delete(unused, g.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("unused-rights.txt names %q, which no role grants", name)
	}
}

// verbsOf are the verbs of a row.
func verbsOf(grants []rights.Grant) string {
	order := []string{"get", "list", "watch", "create", "update", "patch", "delete", "use"}
	slices.SortFunc(grants, func(a, b rights.Grant) int {
		return cmp.Compare(slices.Index(order, a.Verb), slices.Index(order, b.Verb))
	})
	var all []string
	for _, g := range grants {
		all = append(all, g.Verb)
	}
	return strings.Join(all, ", ")
}

func TestTheReferenceListsTheRightsInTheCluster(t *testing.T) {
	page.Hold(t, "reference/rbac.md", map[string]string{"rights": rightsTable(t)}, *update, "go test ./docs -update")
}
