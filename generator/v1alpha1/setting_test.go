package v1alpha1

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEachSettingHasAFieldAndADefaultInItsBounds finds a row that is incomplete.
func TestEachSettingHasAFieldAndADefaultInItsBounds(t *testing.T) {
	spec, seen := Distribution{}.WithDefaults(), map[string]bool{}
	for _, s := range Settings {
		value, given := s.Of(spec) // a key without a field panics
		if want := s.Default != nil && s.Default != false; given != want {
			t.Errorf("%s: the default is %v, and the configuration with defaults has %v", s.Key, s.Default, value)
		}
		for _, problem := range s.Bounds.Problems(value) {
			t.Errorf("%s: the default is out of bounds: %s", s.Key, problem)
		}
		if s.Variable == "" || s.Meaning == "" || s.Reason == "" || seen[s.Key] || seen[s.Variable] {
			t.Errorf("%s: the row has no variable, meaning or reason, or another row has its key or variable", s.Key)
		}
		seen[s.Key], seen[s.Variable] = true, true
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds Bounds
		value  any
		want   []string
	}{
		{Number{Max: 10}, 11, []string{"11 is not between 0 and 10"}},
		{Number{Max: 10}, -1, []string{"-1 is not between 0 and 10"}},
		{Number{Zero: "no limit"}, -1, []string{"-1 is less than 0; 0 means no limit"}},
		{Number{Min: 1}, 0, []string{"0 is less than 1"}},
		{Number{Min: 1}, 1 << 40, nil},
		{Duration{Min: time.Second, Max: time.Minute}, "20", []string{`"20"; want a duration from 1s to 60s in whole seconds, such as 60s`}},
		{Duration{Min: time.Second, Max: time.Minute}, "61s", []string{`"61s"; want a duration from 1s to 60s in whole seconds, such as 60s`}},
		{Duration{Min: time.Second, Max: time.Minute}, "1500ms", []string{`"1500ms"; want a duration from 1s to 60s in whole seconds, such as 60s`}},
		{Duration{Min: time.Second, Max: time.Minute}, "60s", nil},
		{Directory{Example: "/a"}, "a", []string{`"a"; want an absolute path in its shortest form, such as /a`}},
		{Directory{Example: "/a"}, "/a b", []string{`"/a b"; want an absolute path in its shortest form, such as /a`}},
		{Directory{Example: "/a"}, "/a/../b", []string{`"/a/../b"; want an absolute path in its shortest form, such as /a`}},
		{Text{regexp.MustCompile("^[a-z]+$"), "letters"}, "1", []string{`"1"; want letters`}},
		{Text{regexp.MustCompile("^[a-z]+$"), "letters"}, "", nil},
		{Pairs{}, map[string]string{"b": ",", "a": "b"}, []string{`"b": "," must not have control characters, commas, quotation marks or, in the key, equals signs`}},
	} {
		if diff := cmp.Diff(c.want, c.bounds.Problems(c.value)); diff != "" {
			t.Errorf("%T %v (-want +got):\n%s", c.bounds, c.value, diff)
		}
	}
}
