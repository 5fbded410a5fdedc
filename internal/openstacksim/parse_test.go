package openstacksim

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDict(t *testing.T) {
	for _, test := range []struct {
		in   string
		want map[string]string
	}{
		{`{}`, map[string]string{}},
		{`{'k':'v'}`, map[string]string{"k": "v"}},
		{`{ "k" : "v" , 'a': u'b' }`, map[string]string{"k": "v", "a": "b"}},
		{`{'it\'s': "a 'b', {c}"}`, map[string]string{"it's": "a 'b', {c}"}},
		{`{'cinder.csi.openstack.org/cluster': 'kubernetes'}`, map[string]string{"cinder.csi.openstack.org/cluster": "kubernetes"}},
		{`{'k':1}`, nil},
		{`{'k'}`, nil},
		{`k=v`, nil},
		{``, nil},
	} {
		got, ok := parseDict(test.in)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != nil) {
			t.Errorf("%s: ok %v (-want +got):\n%s", test.in, ok, diff)
		}
	}
}

func FuzzParseDict(f *testing.F) {
	for _, seed := range []string{`{}`, `{'k':'v'}`, `{"k": "v", 'a': 'b'}`, `{'it\'s': "x"}`, `{'k':`, `{{`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		m, ok := parseDict(in)
		if !ok && m != nil {
			t.Errorf("refused %q and gave %v", in, m)
		}
	})
}

// FuzzPython: what JSON can say, Python's repr can, and nothing panics.
func FuzzPython(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":[true,null,"x"]}`, `"it's"`, `[`, `{"a"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if json.Valid([]byte(in)) && python(json.RawMessage(in)) == "" {
			t.Errorf("%q became nothing", in)
		}
		python(json.RawMessage(in))
	})
}

func TestPythonKeepsTheOrderOfKeys(t *testing.T) {
	const want = `{'b': 1, 'a': [True, None, 'x', {}], 'c': "it's"}`
	if got := python(json.RawMessage(`{"b":1,"a":[true,null,"x",{}],"c":"it's"}`)); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestFaultPaths(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"", "/anything", true},
		{"/volume/v3/*/volumes", "/volume/v3/p/volumes", true},
		{"/volume/v3/*/volumes", "/volume/v3/p/volumes/1", false},
		{"/volume/**", "/volume/v3/p/volumes/1", true},
		{"/volume/**", "/volume", false},
		{"/compute/**", "/volume/v3", false},
	} {
		if got := faultPath(test.pattern, test.path); got != test.want {
			t.Errorf("%q on %q: want %v, got %v", test.pattern, test.path, test.want, got)
		}
	}
}
