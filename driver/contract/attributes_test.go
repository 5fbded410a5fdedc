package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVolumeAttributesClassParameters(t *testing.T) {
	long := strings.Repeat("ü", 256)
	for name, test := range map[string]struct {
		parameters map[string]string
		want       AttributesClass
		problem    string // part of the error's text
	}{
		"none":                      {},
		"type":                      {parameters: map[string]string{"type": "fast"}, want: AttributesClass{Type: "fast"}},
		"type that may not move":    {parameters: map[string]string{"type": "fast", "policy": "never"}, want: AttributesClass{Type: "fast"}},
		"type that may move":        {parameters: map[string]string{"type": "fast", "policy": "on-demand"}, want: AttributesClass{Type: "fast", Migrate: true}},
		"metadata":                  {parameters: map[string]string{"metadata.team": "storage", "metadata.a.b": "c"}, want: AttributesClass{Metadata: map[string]string{"team": "storage", "a.b": "c"}}},
		"metadata to remove":        {parameters: map[string]string{"metadata.team": "storage", "metadata.z": "", "metadata.a b.c": ""}, want: AttributesClass{Metadata: map[string]string{"team": "storage"}, Remove: []string{"a b.c", "z"}}},
		"a slash to remove":         {parameters: map[string]string{"metadata.a/b": ""}, problem: "a slash"},
		"a format to remove":        {parameters: map[string]string{"metadata.a.json": ""}, problem: ".json"},
		"another format to remove":  {parameters: map[string]string{"metadata.a.xml": ""}, problem: ".xml"},
		"a parent to remove":        {parameters: map[string]string{"metadata...": ""}, problem: "or .."},
		"own metadata to remove":    {parameters: map[string]string{"metadata.cinder.csi.openstack.org/cluster": ""}, problem: "driver itself"},
		"own metadata in capitals":  {parameters: map[string]string{"metadata.SRC_BACKUP_ID": ""}, problem: "driver itself"},
		"own metadata and a blank":  {parameters: map[string]string{"metadata.cinder.csi.openstack.org/Cluster ": "x"}, problem: "driver itself"},
		"an empty type":             {parameters: map[string]string{"type": ""}, problem: "is empty"},
		"an unknown policy":         {parameters: map[string]string{"type": "fast", "policy": "always"}, problem: `"always" is neither never nor on-demand`},
		"a policy for nothing":      {parameters: map[string]string{"policy": "on-demand"}, problem: "no parameter type"},
		"metadata without a key":    {parameters: map[string]string{"metadata.": "x"}, problem: "1 to 255"},
		"metadata too long":         {parameters: map[string]string{"metadata.a": long}, problem: "255"},
		"the driver's own metadata": {parameters: map[string]string{"metadata.cinder.csi.openstack.org/cluster": "x"}, problem: "driver itself"},
		"Cinder's own metadata":     {parameters: map[string]string{"metadata.src_backup_id": "x"}, problem: "driver itself"},
		"a typo":                    {parameters: map[string]string{"tpye": "fast"}, problem: `"tpye" is not known; did you mean type?`},
		"Cinder's word for policy":  {parameters: map[string]string{"type": "fast", "migration_policy": "on-demand"}, problem: "did you mean policy?"},
		"a typo in metadata":        {parameters: map[string]string{"metdata.team": "x"}, problem: "did you mean metadata.team?"},
		"something else":            {parameters: map[string]string{"iops": "3000"}, problem: `"iops" is not known; a VolumeAttributesClass may have type, policy and metadata.<key>`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseAttributesClass(test.parameters)
			if !problemIs(err, test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("-want +got\n", diff)
			}
		})
	}
}

func FuzzParseAttributesClass(f *testing.F) {
	for _, seed := range []string{"type", "policy", "metadata.a", "metadata.", "volumeType", ".", ""} {
		f.Add(seed, "on-demand")
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		class, err := ParseAttributesClass(map[string]string{key: value})
		if err != nil {
			return
		}
		if len(class.Metadata) == 0 && len(class.Remove) == 0 && class.Type == "" || class.Migrate {
			t.Errorf("%q=%q is taken and asks for nothing: %+v", key, value, class)
		}
		for k, v := range class.Metadata {
			if v == "" || k == "" || len([]rune(k)) > 255 || key != ParameterMetadataPrefix+k {
				t.Errorf("%q=%q gives metadata %q", key, value, k)
			}
		}
		for _, k := range class.Remove {
			if k == "" || value != "" || strings.Contains(k, "/") || key != ParameterMetadataPrefix+k {
				t.Errorf("%q=%q removes metadata %q", key, value, k)
			}
		}
	})
}
