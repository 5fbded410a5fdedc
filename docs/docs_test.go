// Package docs holds the documentation; this test holds its tables to the code.
package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/guestaccess"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/generator/migrate"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the tables anew")

func flagsTable() string {
	var c config.Config
	return tableOf(c.Bind)
}

func guestTokenTable() string {
	var o guestaccess.Options
	return tableOf(o.Bind)
}

// tableOf describes the flags that a program binds.
func tableOf(bind func(*pflag.FlagSet)) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	bind(set)
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || strings.HasPrefix(f.Usage, "no effect") {
			return
		}
		fallback := f.DefValue
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.Name, fallback, f.Usage)
	})
	return b.String()
}

// optionsTable lists the keys of cloud.conf, those of [Global] without their section. Keys that mean the same share a row.
func optionsTable() string {
	type row struct{ meaning, fallback string }
	var rows []row
	keys := map[row][]string{}
	for _, o := range config.Options {
		r := row{meaning: o.Meaning}
		if o.Default != "" {
			r.fallback = "`" + o.Default + "`"
		}
		if o.NeedsRestart() {
			r.meaning += ". Restart"
		}
		if keys[r] == nil {
			rows = append(rows, r)
		}
		keys[r] = append(keys[r], "`"+strings.TrimPrefix("["+o.Section+"] ", "[Global] ")+o.Key+"`")
	}
	var b strings.Builder
	b.WriteString("| key | default | meaning |\n| --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(keys[r], ", "), r.fallback, r.meaning)
	}
	return b.String()
}

// flagsOf lists each flag once, with the commands that take it.
func flagsOf(root *cobra.Command) string {
	type row struct{ flag, fallback, meaning string }
	var rows []row
	takers := map[row][]string{}
	add := func(taker string) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			r := row{flag: "`--" + f.Name + "`", meaning: f.Usage}
			if f.Shorthand != "" {
				r.flag += ", `-" + f.Shorthand + "`"
			}
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
				r.fallback = "`" + f.DefValue + "`"
			}
			if takers[r] == nil {
				rows = append(rows, r)
			}
			takers[r] = append(takers[r], taker)
		}
	}
	root.PersistentFlags().VisitAll(add("every command"))
	for _, c := range root.Commands() {
		c.LocalNonPersistentFlags().VisitAll(add("`" + c.Name() + "`"))
		for _, sub := range c.Commands() {
			if c.Name() != "completion" { // its commands are those of cobra
				sub.LocalNonPersistentFlags().VisitAll(add("`" + c.Name() + " " + sub.Name() + "`"))
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.flag, b.flag) })
	var b strings.Builder
	b.WriteString("| flag | of | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, r := range rows {
		if slices.Equal(takers[r], []string{"`doctor volume`"}) { // kubectl cinder has them
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.flag, takersOf(root, takers[r]), r.fallback, r.meaning)
	}
	return b.String()
}

// takersOf names the commands that take a flag, or the one or two of many that do not.
func takersOf(root *cobra.Command, takers []string) string {
	var others []string
	for _, c := range root.Commands() {
		if name := "`" + c.Name() + "`"; !slices.Contains(takers, name) && c.Name() != "completion" && c.Name() != "help" {
			others = append(others, name)
		}
	}
	if len(takers) > 4 && len(others) < 3 {
		return "all but " + strings.Join(others, ", ")
	}
	return strings.Join(takers, ", ")
}

// ofKubernetes are the keys below those that take what Kubernetes takes.
var ofKubernetes = regexp.MustCompile(`\.(affinity|tolerations\[\]|topologySpreadConstraints\[\])\.`)

// distributionKeys is a table of all keys. What is refused is in the schema, and in the message of the refusal.
func distributionKeys() string {
	var b strings.Builder
	b.WriteString("| key | default | meaning |\n| --- | --- | --- |\n")
	keys := v1alpha1.Keys()
	first := map[v1alpha1.Key]string{} // where a key of this name, kind and meaning is
	for i, k := range keys {
		// An object whose meaning is that of its keys says nothing more.
		groups := k.Type == "object" && k.Default == "" && k.Refused == "" && !strings.Contains(k.Meaning, ". ") &&
			i+1 < len(keys) && strings.HasPrefix(keys[i+1].Path, k.Path+".")
		if groups || ofKubernetes.MatchString(k.Path) {
			continue
		}
		parent, name := k.Path[:max(strings.LastIndex(k.Path, "."), 0)], k.Path[strings.LastIndex(k.Path, ".")+1:]
		same := k
		same.Path = name
		if strings.HasPrefix(parent, "spec.storageClasses.extra") && first[same] != "" { // overrides has it
			continue
		}
		first[same] = k.Path
		if k.Path == "spec.storageClasses.extra" {
			k.Meaning += " Its other keys are those of `spec.storageClasses.overrides`."
		}
		if k.Default == "none" && !strings.HasPrefix(k.Type, "one of ") {
			k.Default = "" // the page says what that means
		}
		k.Meaning = strings.TrimSuffix(k.Meaning, " Its keys are those of `spec.images.driver`.") // the page says it once for all images
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Path+suffixOf(k.Type), k.Default, k.Meaning+valuesOf(k))
	}
	return b.String()
}

// suffixOf is what the path of a key ends with if it holds several.
func suffixOf(kind string) string {
	switch {
	case strings.HasPrefix(kind, "list of "):
		return "[]"
	case strings.HasSuffix(kind, " by name"):
		return ".*"
	}
	return ""
}

// valuesOf names the values of a key that takes one of a few, if its meaning and default leave any out.
func valuesOf(k v1alpha1.Key) string {
	values, is := strings.CutPrefix(k.Type, "one of ")
	for value := range strings.SplitSeq(values, ", ") {
		if is && !regexp.MustCompile(`\b`+value+`\b`).MatchString(k.Meaning) {
			return " One of " + values + "."
		}
	}
	return ""
}

// rulesBlock writes access rules as the JSON that the openstack client reads.
func rulesBlock(rules []openstack.AccessRule) string {
	var b strings.Builder
	b.WriteString("```json\n[\n")
	for i, rule := range rules {
		line, err := json.Marshal(rule)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "  %s", line)
		if i < len(rules)-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString("]\n```\n")
	return b.String()
}

// exitCodes lists the exit codes of a program.
func exitCodes(exits []command.Exit) string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n| --- | --- |\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.Meaning)
	}
	return b.String()
}

// doctorChecks lists what doctor looks at.
func doctorChecks() string {
	var b strings.Builder
	b.WriteString("| check | means |\n| --- | --- |\n")
	for _, c := range doctor.Checks {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.ID, c.Means)
	}
	return b.String()
}

// importRows lists what import does with each key of upstream's files.
func importRows() string {
	var b strings.Builder
	b.WriteString("| file | key | is now | or, why it is left out |\n| --- | --- | --- | --- |\n")
	for _, r := range migrate.Rows() {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", r.File, r.Key, r.To, r.Why)
	}
	return b.String()
}

// The generator must not import the driver, so its copy of the access rules is a file.
func TestDoctorComparesWithTheAccessRulesOfTheDriver(t *testing.T) {
	const path = "../generator/doctor/access-rules.json"
	want := strings.TrimSuffix(strings.TrimPrefix(rulesBlock(openstack.AccessRules()), "```json\n"), "```\n")
	if *update {
		testfile.Write(t, path, want, 0o644)
	}
	got := testfile.Read(t, path)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the driver sends; go test ./docs -update writes it (-want +got):\n%s", path, diff)
	}
}

func TestDoctorKnowsEveryMicroversionOfTheDriver(t *testing.T) {
	want := map[string]bool{}
	for _, c := range openstack.Calls {
		if c.Microversion != "" {
			want[c.Service+" "+c.Microversion] = true
		}
	}
	delete(want, "block-storage 3.71") // no feature: the driver asks whether this is a Cinder that leaves volumes in status retyping
	if diff := cmp.Diff(want, doctor.Microversions()); diff != "" {
		t.Errorf("(-driver +doctor):\n%s", diff)
	}
}

func TestReferencesListWhatTheCodeHas(t *testing.T) {
	for path, parts := range map[string]map[string]string{
		"reference/driver.md": {
			"flags": flagsTable(), "options": optionsTable(), "guest-token": guestTokenTable(), "exits": describedTable("code", config.Exits),
			"class": describedTable("key", contract.StorageClassParameters), "attributes-class": describedTable("key", contract.AttributesClassParameters),
			"snapshot-class": describedTable("key", contract.SnapshotClassParameters), "metadata": describedTable("key", contract.VolumeMetadata),
		},
		"reference/generator.md":       {"flags": flagsOf(cli.Commands()), "checks": doctorChecks(), "exits": exitCodes(cli.Exits)},
		"reference/keys.md":            {"keys": distributionKeys()},
		"../generator/migrate/KEYS.md": {"import": importRows()},
		"how-to/troubleshoot.md":       troubleshootParts(t),
		"reference/kubectl-cinder.md":  {"commands": pluginCommands(), "flags": flagsOf(command.Commands()), "exits": exitCodes(command.Exits)},
		"reference/causes.md":          causesParts(),
		"reference/access-rules.md":    {"access-rules": rulesBlock(openstack.AccessRules())},
	} {
		page.Hold(t, path, parts, *update, "go test ./docs -update")
	}
}

// describedTable lists names with what they mean.
func describedTable(head string, all []contract.Described) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | meaning |\n| --- | --- |\n", head)
	for _, d := range all {
		fmt.Fprintf(&b, "| `%s` | %s |\n", d.Name, d.Meaning)
	}
	return b.String()
}

// codeRow is a row of a table of gRPC codes.
var codeRow = regexp.MustCompile("(?m)^\\| ((?:`[A-Z][A-Za-z]+`(?:, )?)+) \\|")

// The tables of codes say when an RPC answers with a code. Which codes it has is decided elsewhere, and reviewed: in test/suite/errortable, which has the RPCs of
// the controller.
func TestTheTablesOfCodesHaveTheCodesOfTheirRPC(t *testing.T) {
	table, driver := testfile.Text(t, "../test/suite/errortable/testdata/table.txt"), testfile.Text(t, "reference/driver.md")
	for section, rpc := range map[string]string{
		"\n## VolumeAttributesClass parameters\n": "ControllerModifyVolume", "\n## Attaching\n": "ControllerPublishVolume",
	} {
		_, text, _ := strings.Cut(driver, section)
		text, _, _ = strings.Cut(text, "\n## ")
		got, has := 0, map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^`+rpc+`\t[^\t]+\t[^\t]+\t(\w+)\t`).FindAllStringSubmatch(table, -1) {
			has[row[1]] = true
		}
		for _, row := range codeRow.FindAllStringSubmatch(text, -1) {
			for _, code := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
				if got++; !has[code] {
					t.Errorf("reference/driver.md: %s never answers %s", rpc, code)
				}
			}
		}
		if got < 4 {
			t.Errorf("reference/driver.md: the table of codes of %s has %d", rpc, got)
		}
	}
}

// testNames are the names of all tests and fuzz targets of the project.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// TestEveryAttackHasATest: the page on security promises nothing without a test.
func TestEveryAttackHasATest(t *testing.T) {
	text := testfile.Text(t, "explanation/security.md")
	attackers, rows, attacks := 0, 0, false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			attacks = false
		case len(cells) == 3 && strings.TrimSpace(cells[2]) == "test":
			attacks = true
			attackers++
		case attacks && !strings.Contains(line, "| --- |"):
			if rows++; len(cells) != 3 || !regexp.MustCompile("`(?:Test|Fuzz)[A-Z]").MatchString(cells[2]) {
				t.Errorf("no test: %s", line)
			}
		}
	}
	if attackers < 8 || rows < 50 {
		t.Errorf("the page has %d attackers and %d attacks", attackers, rows)
	}
}

// TestEveryTestThatAPageNamesIsThere: the pages say which test shows what; a test that is renamed or gone must not leave them wrong.
func TestEveryTestThatAPageNamesIsThere(t *testing.T) {
	there := testNames(t)
	pages, err := filepath.Glob("*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text := testfile.Text(t, page)
		for _, named := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			if !there[named[1]] {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

// The map of packages has each one, by its last name. Those that only tests import are left out.
func TestTheMapOfPackagesNamesEachPackage(t *testing.T) {
	page := testfile.Text(t, "contributing/architecture.md")
	for _, top := range []string{"driver", "generator", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			product := slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
			name := d.Name()
			if err != nil || len(product) == 0 || strings.HasSuffix(name, "test") || slices.Contains(notOnTheMap, name) {
				return err
			}
			if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "/"+name+"`") {
				t.Errorf("contributing/architecture.md does not name %s", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// notOnTheMap are parts of one package on the map, which alone imports them.
var notOnTheMap = []string{"command", "singleflight", "wait", "field", "sidecarflags", "cloudfile", "dataplane"}
