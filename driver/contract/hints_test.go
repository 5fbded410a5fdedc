package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const aServer = "00000000-0000-4000-8000-00000000000A"

func TestHints(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		want    Hints
		problem string
	}{
		"empty":             {text: "{}"},
		"one volume":        {text: `{"same_host": "db"}`, want: Hints{SameHost: []string{"db"}}},
		"several, one once": {text: `{"different_host": ["b", "a", "b"]}`, want: Hints{DifferentHost: []string{"a", "b"}}},
		"a query as JSON":   {text: `{"query": ["=", "$backend_id", "x"]}`, want: Hints{Query: `["=","$backend_id","x"]`}},
		"a query as text":   {text: `{"query": "[\"=\", \"a\", 1]"}`, want: Hints{Query: `["=","a",1]`}},
		"a server":          {text: `{"local_to_instance": "` + aServer + `"}`, want: Hints{LocalToServer: aServer}},
		"nothing of each":   {text: `{"same_host": "", "different_host": [], "query": null, "local_to_instance": ""}`},
		"no object":         {text: `["a"]`, problem: "JSON object"},
		"unknown hint":      {text: `{"samehost": "a"}`, problem: "samehost"},
		"more than one":     {text: `{} {}`, problem: "follows"},
		"a number":          {text: `{"same_host": 7}`, problem: "id or name"},
		"an empty name":     {text: `{"same_host": ["a", ""]}`, problem: "empty"},
		"too many":          {text: `{"same_host": ["` + strings.Join(strings.Split(strings.Repeat("abcdefghijklmnopqrstuvwxyzABCDEFGH", 1), ""), `","`) + `"]}`, problem: "at most 32"},
		"no query":          {text: `{"query": "backend"}`, problem: "condition"},
		"no server's id":    {text: `{"local_to_instance": "node-1"}`, problem: "not a server ID"},
	} {
		t.Run(name, func(t *testing.T) {
			class, _, err := ParseStorageClass(map[string]string{ParameterHints: test.text})
			if !problemIs(err, test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(test.want, class.Hints, cmp.Transformer("empty", func(s []string) string { return strings.Join(s, ",") })); diff != "" {
				t.Error("-want +got\n", diff)
			}
			if err == nil && class.Hints.Empty() != (test.want.SameHost == nil && test.want.DifferentHost == nil && test.want.Query == "" && test.want.LocalToServer == "") {
				t.Errorf("%+v is empty: %v", class.Hints, class.Hints.Empty())
			}
		})
	}
}

func FuzzHints(f *testing.F) {
	for _, seed := range []string{"{}", `{"same_host":"a","query":["=","a","b"]}`, `{"query":"[1]"}`, `{"different_host":["a","b"]}`, "null", "[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHints(text)
		if err != nil {
			return
		}
		for _, list := range [][]string{h.SameHost, h.DifferentHost} {
			if len(list) > maxHinted {
				t.Errorf("%d volumes", len(list))
			}
			for i, name := range list {
				if name == "" || i > 0 && list[i-1] >= name {
					t.Errorf("%q holds nothing, or one twice", list)
				}
			}
		}
		if again, err := parseQuery([]byte(h.Query)); h.Query != "" && (err != nil || again != h.Query) {
			t.Errorf("query %q becomes %q, %v", h.Query, again, err)
		}
	})
}

func TestHintsOfAClaim(t *testing.T) {
	many := strings.Repeat("a b,", maxHinted)
	for i := range maxHinted {
		many += fmt.Sprintf("v%d,", i)
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        Hints
		problem     string
	}{
		"none":             {nil, Hints{}, ""},
		"others":           {map[string]string{"cinder.csi.openstack.org/afinity": "a"}, Hints{}, ""},
		"commas or blanks": {map[string]string{AnnotationSameHost: " b,a  c,,a\n"}, Hints{SameHost: []string{"a", "b", "c"}}, ""},
		"both":             {map[string]string{AnnotationSameHost: "a", AnnotationDifferentHost: "b"}, Hints{SameHost: []string{"a"}, DifferentHost: []string{"b"}}, ""},
		"too many":         {map[string]string{AnnotationDifferentHost: many}, Hints{}, AnnotationDifferentHost},
	} {
		got, err := HintsOfClaim(test.annotations)
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
}

func TestHintsOfAClassAndAClaimTogether(t *testing.T) {
	class := Hints{SameHost: []string{"a"}, Query: "[1]", LocalToServer: "s"}
	want := Hints{SameHost: []string{"a", "b"}, DifferentHost: []string{"c"}, Query: "[1]", LocalToServer: "s"}
	if diff := cmp.Diff(want, class.With(Hints{SameHost: []string{"b"}, DifferentHost: []string{"c"}})); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func FuzzHintsOfClaim(f *testing.F) {
	f.Add("a, b\tc", "")
	f.Fuzz(func(t *testing.T, same, different string) {
		h, err := HintsOfClaim(map[string]string{AnnotationSameHost: same, AnnotationDifferentHost: different})
		for _, name := range slices.Concat(h.SameHost, h.DifferentHost) {
			if err != nil || name == "" || strings.ContainsAny(name, ", \t\n") {
				t.Errorf("%q, %q: got %q, %v", same, different, name, err)
			}
		}
	})
}
