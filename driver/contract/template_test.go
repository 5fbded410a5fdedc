package contract

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMetadataTemplates(t *testing.T) {
	claim := map[string]string{MetadataPVCName: "data", MetadataPVCNamespace: "shop", MetadataPVName: "pvc-1"}
	for name, test := range map[string]struct {
		parameters map[string]string
		want       map[string]string // besides the claim's own keys
		problem    string            // of the class
		unfilled   string            // of filling it
		nameless   bool              // external-provisioner tells no claim
	}{
		"plain text":           {parameters: map[string]string{"metadata.team": "storage"}, want: map[string]string{"team": "storage"}},
		"no text":              {parameters: map[string]string{"metadata.team": ""}, want: map[string]string{"team": ""}},
		"every place":          {parameters: map[string]string{"metadata.a b": "${pvc.namespace}/${pvc.name}=${pv.name}"}, want: map[string]string{"a b": "shop/data=pvc-1"}},
		"a dollar":             {parameters: map[string]string{"metadata.price": "5$$ $${pvc.name}"}, want: map[string]string{"price": "5$ ${pvc.name}"}},
		"beside upstream's":    {parameters: map[string]string{"metadata.a": "1", "appendVolumeMetadata": `{"b": "${pvc.name}"}`}, want: map[string]string{"a": "1", "b": "${pvc.name}"}},
		"a dollar alone":       {parameters: map[string]string{"metadata.a": "5$"}, problem: "$$"},
		"not closed":           {parameters: map[string]string{"metadata.a": "${pvc.name"}, problem: "$$"},
		"nothing known":        {parameters: map[string]string{"metadata.a": "${pvc.label}"}, problem: "pvc.namespace"},
		"a key of ours":        {parameters: map[string]string{"metadata.cinder.csi.openstack.org/cluster": "x"}, problem: "driver itself"},
		"no key":               {parameters: map[string]string{"metadata.": "x"}, problem: "keys of 1 to 255"},
		"a key Cinder refuses": {parameters: map[string]string{"metadata.ä": "x"}, problem: "keys of 1 to 255"},
		"the same key twice":   {parameters: map[string]string{"metadata.a": "x", "appendVolumeMetadata": `{"a": "y"}`}, problem: "appendVolumeMetadata sets the same key"},
		"a long template":      {parameters: map[string]string{"metadata.a": strings.Repeat("x", 1025)}, problem: "more than the 1024"},
		"a long value":         {parameters: map[string]string{"metadata.a": strings.Repeat("x", 250) + "${pvc.name}${pv.name}"}, unfilled: "259 characters"},
		"no claim is told":     {parameters: map[string]string{"metadata.a": "${pvc.name}"}, nameless: true, unfilled: "--extra-create-metadata"},
		"none is needed":       {parameters: map[string]string{"metadata.a": "b"}, nameless: true, want: map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := test.parameters
			if test.want == nil {
				test.want = map[string]string{}
			}
			if !test.nameless {
				for key, value := range claim {
					parameters[key], test.want[key] = value, value
				}
			}
			class, unknown, err := ParseStorageClass(parameters)
			if !problemIs(err, test.problem) || len(unknown) != 0 {
				t.Fatalf("want an error with %q, got %v; unknown %v", test.problem, err, unknown)
			}
			if err != nil {
				return
			}
			got, err := class.VolumeMetadata()
			if !problemIs(err, test.unfilled) {
				t.Fatalf("want an error with %q, got %v", test.unfilled, err)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Error("-want +got\n", diff)
			}
		})
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "a", "$$", "${pvc.name}", "${pvc.name", "$${pv.name}$$$${pvc.namespace}", "$", "ä${}"} {
		f.Add(seed, "data")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		template, err := parseTemplate(text)
		if err != nil {
			return
		}
		got, err := template.Fill(map[string]string{PlaceholderPVCName: value, PlaceholderPVCNamespace: value, PlaceholderPVName: value})
		switch {
		case err != nil && value != "" && utf8.RuneCountInString(text)+strings.Count(text, "{")*utf8.RuneCountInString(value) <= maxMetadata:
			t.Errorf("%q with %q: %v", text, value, err)
		case err == nil && utf8.RuneCountInString(got) > maxMetadata:
			t.Errorf("%q with %q has %d characters", text, value, utf8.RuneCountInString(got))
		case err == nil && !strings.Contains(text, "$") && got != text:
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
