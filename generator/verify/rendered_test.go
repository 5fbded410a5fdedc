package verify

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestValuesThatAChartDistinguishesAreNotTheSameRendering counts the renderings of each two values.
func TestValuesThatAChartDistinguishesAreNotTheSameRendering(t *testing.T) {
	different := []any{
		nil, "", "1", 1, int64(1), 1.0, true, "true",
		[]any{},
		[]any{nil},
		map[string]any{},
		map[string]any{"a": nil},
		[]any{"a", "b"},
		[]any{`a" "b`},
		[]any{[]any{"a"}, "b"},
		[]any{[]any{"a", "b"}},
		map[string]any{"a": map[string]any{"b": "c"}},
		map[string]any{"a": map[string]any{}, "b": "c"},
		map[string]string{"a": "b"},
		map[string]any{"a": "b"},
		[]string{"a", "b"},
	}
	for _, first := range different {
		for _, second := range different {
			var r renderings
			count := 0
			render := func() (map[string]string, error) {
				count++
				return map[string]string{"file": fmt.Sprint(count)}, nil
			}
			for _, v := range []any{first, second, first} {
				if _, err := r.of(v, render); err != nil {
					t.Fatal(err)
				}
			}
			if same := fmt.Sprintf("%T %#v", first, first) == fmt.Sprintf("%T %#v", second, second); same && count != 1 || !same && count != 2 {
				t.Errorf("%#v and %#v: %d renderings", first, second, count)
			}
		}
	}
}

func TestTheRenderingsThatAreKeptAreTheLastUsed(t *testing.T) {
	var r renderings
	rendered := 0
	for n := range 3 * mostRenderings {
		for _, v := range []any{"base", n} {
			if _, err := r.of(v, func() (map[string]string, error) { rendered++; return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := 1 + 3*mostRenderings; rendered != want || len(r.kept) != mostRenderings {
		t.Errorf("want %d renderings and %d kept, got %d and %d", want, mostRenderings, rendered, len(r.kept))
	}
	failed := fmt.Errorf("refused")
	for range 2 {
		if _, err := r.of("refused", func() (map[string]string, error) { rendered++; return nil, failed }); err != failed {
			t.Errorf("want %v, got %v", failed, err)
		}
	}
}

// RenderedAnew forgets what has been rendered, and says how many renderings follow.
func RenderedAnew() (count func() int) {
	rendered = renderings{}
	return func() int { return len(rendered.kept) }
}

// A template alone has the helpers that it includes, and the chart builds no name of a helper.
func TestATemplateAloneIsRenderedAsInTheWholeChart(t *testing.T) {
	built := regexp.MustCompile(`(include|template) +[^" ]`)
	c, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Templates {
		if found := built.Find(f.Data); found != nil {
			t.Errorf("%s names a helper by other than its name: %s", f.Name, found)
		}
	}
	seen := 0
	for _, of := range [][2]string{{"vanilla", "cluster"}, {"standalone", "cluster"}, {"hypershift", "management"}, {"hypershift", "guest"}} {
		values := map[string]any{
			"target": of[0], "plane": of[1], "images": map[string]any{"registry": "mirror.example"},
			"monitoring": map[string]any{"kind": "ServiceMonitor", "alerts": true, "dashboards": true},
		}
		whole, err := Chart(values, false)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range whole {
			if !strings.HasSuffix(name, ".yaml") {
				continue
			}
			seen++
			if alone, err := Chart(values, false, path.Base(name)); err != nil || len(alone) == 0 || alone[name] != text {
				t.Errorf("%s of %s alone: %v\n%s", name, of, err, alone[name])
			}
		}
	}
	if seen < 50 {
		t.Errorf("saw %d templates, want all in four planes", seen)
	}
}
