package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The corpus is testdata/corpus: a file for each shape in which people keep the configuration of upstream's plugin. A file says with which public
// example its shape was compared, and holds inputs, each with what import makes of it.

const (
	inputMark = "=== "
	wantMark  = "--> "
)

// sample is an input of the corpus.
type sample struct{ name, input, want string }

// shape is a file of the corpus.
type shape struct {
	path, head string
	samples    []sample
}

func corpus(t *testing.T) []shape {
	t.Helper()
	paths, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []shape
	for _, path := range paths {
		text := testfile.Text(t, path)
		parts := strings.Split("\n"+text, "\n"+inputMark)
		s := shape{path: path, head: strings.TrimPrefix(parts[0], "\n")}
		for _, part := range parts[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			input, want, _ := strings.Cut("\n"+rest, "\n"+wantMark)
			s.samples = append(s.samples, sample{name, strings.TrimPrefix(input, "\n") + "\n", strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n"+wantMark, "\n")})
		}
		all = append(all, s)
	}
	return all
}

// outcome is what import makes of a text: the Distribution and the lines, or the refusal.
type outcome struct {
	distribution v1alpha1.Distribution
	spec         string
	lines        []string
	err          error
}

func outcomeOf(t *testing.T, content string) outcome {
	t.Helper()
	d, notes, err := Import(files(content))
	o := outcome{distribution: d, err: err}
	if err != nil {
		return o
	}
	text, err := v1alpha1.YAML(d)
	if err != nil {
		t.Fatal(err)
	}
	_, o.spec, _ = strings.Cut(string(text), "spec:\n")
	for _, n := range notes {
		o.lines = append(o.lines, n.String())
	}
	return o
}

// text is the outcome as the corpus has it. Sentences that stand in many inputs are cut.
func (o outcome) text() string {
	if o.err != nil {
		return "refused: " + strings.ReplaceAll(o.err.Error(), "\n", "\nrefused: ")
	}
	var b strings.Builder
	b.WriteString(o.spec)
	for _, line := range o.lines {
		if len(line) > 200 {
			line = strings.ToValidUTF8(line[:200], "") + "..."
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestTheCorpusBecomesWhatItSays(t *testing.T) {
	count := 0
	for _, s := range corpus(t) {
		if !strings.Contains(s.head, "compared with: ") {
			t.Errorf("%s: want the public example that the shape was compared with", s.path)
		}
		out := s.head + "\n"
		for _, c := range s.samples {
			count++
			got := outcomeOf(t, c.input).text()
			out += inputMark + c.name + "\n" + c.input + wantMark + strings.ReplaceAll(got, "\n", "\n"+wantMark) + "\n"
			if diff := cmp.Diff(c.want, got); diff != "" && !*update {
				t.Errorf("%s, %s (-want +got):\n%s", s.path, c.name, diff)
			}
		}
		if *update {
			testfile.Write(t, s.path, out, 0o644)
		}
	}
	if count < 150 {
		t.Errorf("want 150 inputs or more, got %d", count)
	}
}

// Nothing is read by luck: without any one leaf an input becomes something else, or a line that covers the leaf goes.
func TestEachLeafOfTheCorpusIsUsedOrNamed(t *testing.T) {
	leaves, number := 0, 0
	for _, s := range corpus(t) {
		for _, c := range s.samples {
			number++
			if number%5 != 0 && !testenv.Full() {
				continue
			}
			whole := outcomeOf(t, c.input)
			if whole.err != nil {
				continue // the refusal is about the whole file
			}
			for _, l := range leavesOf(c.input) {
				leaves++
				if without := outcomeOf(t, l.without); cmp.Equal(whole.text(), without.text()) && without.err == nil && !whole.covers(l.path) {
					t.Errorf("%s, %s: nobody notices that %s is gone", s.path, c.name, strings.Join(l.path, "."))
				}
			}
		}
	}
	t.Logf("%d leaves", leaves)
}

// leaf is an input without one of its leaves.
type leaf struct {
	path    []string
	without string
}

// leavesOf are the lines of a cloud.conf, or the leaves of YAML.
func leavesOf(input string) []leaf {
	var all []leaf
	if header.Match(firstLine([]byte(strings.TrimPrefix(input, "\ufeff")))) {
		lines := strings.SplitAfter(input, "\n")
		for i, line := range lines {
			if strings.Contains(line, "=") {
				all = append(all, leaf{[]string{line}, strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")})
			}
		}
		return all
	}
	parts := split([]byte(input))
	for at, p := range parts {
		var content any
		if yaml.Unmarshal(p.text, &content) != nil {
			continue
		}
		for _, path := range pathsOf(content, nil) {
			var changed any
			if err := yaml.Unmarshal(p.text, &changed); err != nil {
				continue
			}
			text, err := yaml.Marshal(without(changed, path))
			if err != nil {
				continue
			}
			var out string
			for i, other := range parts {
				if i == at {
					out += "---\n" + string(text)
				} else {
					out += "---\n" + strings.TrimPrefix(string(other.text), "---\n")
				}
			}
			all = append(all, leaf{path, out})
		}
	}
	return all
}

// pathsOf are the paths of the leaves.
func pathsOf(v any, above []string) [][]string {
	var all [][]string
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, pathsOf(v[key], append(slices.Clone(above), key))...)
		}
	case []any:
		for i, item := range v {
			all = append(all, pathsOf(item, append(slices.Clone(above), fmt.Sprint(i)))...)
		}
	default:
		if len(above) > 0 {
			all = append(all, above)
		}
	}
	return all
}

func without(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
		} else {
			v[path[0]] = without(v[path[0]], path[1:])
		}
		return v
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil {
			return v
		}
		if len(path) == 1 {
			return slices.Delete(v, i, i+1)
		}
		v[i] = without(v[i], path[1:])
		return v
	}
	return v
}

// identity are the keys that name an object and hold no setting; of a Pod and of a list they stand deeper.
var identityKeys = []string{"apiVersion", "kind", "name", "namespace", "labels"}

// covers reports whether a leaf needs no line of its own. Then a line says that a key above it is left out, or it names an object. Or every
// installation of upstream's has it.
func (o outcome) covers(path []string) bool {
	for i, key := range path {
		if key == "metadata" && i+1 < len(path) && slices.Contains(identityKeys, path[i+1]) {
			return true
		}
		named := func(line string) bool {
			what, _, leftOut := strings.Cut(line, ": left out: ")
			if before, _, inPart := strings.Cut(line, ": without the terms"); inPart {
				what, _, leftOut = strings.Cut(before, ": is now ")
			}
			return leftOut && (strings.HasSuffix(what, "."+key) || strings.HasSuffix(what, " "+key) || strings.HasSuffix(what, "["+key+"]"))
		}
		if slices.ContainsFunc(o.lines, named) {
			return true
		}
	}
	whole := func(line string) bool { // of a class, a Secret or a kind without settings
		return strings.Contains(line, ": the class: ") || strings.Contains(line, ": the keys ") || strings.Contains(line, "it has no setting of the driver") ||
			strings.Contains(line, "inline volumes (") || strings.Contains(line, ": PersistentVolumes ") || strings.Contains(line, "selects nothing then") || strings.Contains(line, "ClusterResourceSet: ")
	}
	last := path[len(path)-1]
	switch {
	case slices.Contains([]string{"apiVersion", "kind", "USER-SUPPLIED VALUES", "COMPUTED VALUES"}, last):
		return true
	case slices.Contains(chartKeyNames, last): // a carrier may name the chart twice
		return true
	case slices.Contains(path, "extraEnv") && last == "value": // plan refuses the variable, whatever it has
		return true
	case slices.Contains(path, "containers"), slices.Contains(path, "initContainers"), slices.Contains(path, "volumes"): // tables say what every installation has
		return slices.Contains(path, "args") || slices.Contains(path, "env") || last == "name" || slices.Contains(path, "volumes")
	}
	return slices.ContainsFunc(o.lines, whole)
}

// What import writes, generate accepts: plan makes every decision for each proposal of the corpus.
func TestPlanTakesEachProposalOfTheCorpus(t *testing.T) {
	number := 0
	for _, s := range corpus(t) {
		for _, c := range s.samples {
			o := outcomeOf(t, c.input)
			if o.err != nil {
				continue
			}
			number++
			d := o.distribution
			d.Spec.Images.Driver.Registry, d.Spec.Images.Driver.Repository, d.Spec.Images.Driver.Tag = "registry.example.com", "driver", "v1"
			_, err := plan.Decide(v1alpha1.Inventory{}, d, v1alpha1.Vanilla, v1alpha1.Kustomize, "")
			mistakes := (*plan.ConfigError)(nil)
			if errors.As(err, &mistakes) {
				for _, problem := range mistakes.Problems {
					t.Errorf("%s, %s: plan says %s", s.path, c.name, problem)
				}
			}
		}
	}
	t.Logf("%d proposals", number)
}
