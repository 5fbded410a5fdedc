package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestFurtherDaemonSetsBecomeNodePools(t *testing.T) {
	d, notes, err := Import(below(t, "pools"))
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, d, notes)
	if *update {
		testfile.Write(t, "testdata/pools.want", got, 0o644)
	}
	want := testfile.Read(t, "testdata/pools.want")
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheAffinityOfAllNodesDoesNotKeepPodsFromTheirPool(t *testing.T) {
	sets := &nodePools{key: "pool", pools: []*nodePool{
		{NodePool: v1alpha1.NodePool{NodeSelector: map[string]string{"pool": "a"}}}, {NodePool: v1alpha1.NodePool{NodeSelector: map[string]string{"pool": "b"}}},
	}}
	pool := func(operator string, values ...string) v1alpha1.NodeRequirement {
		return v1alpha1.NodeRequirement{Key: "pool", Operator: operator, Values: values}
	}
	site := v1alpha1.NodeRequirement{Key: "site", Operator: "In", Values: []string{"x"}}
	type terms [][]v1alpha1.NodeRequirement
	for name, test := range map[string]struct {
		given, want terms // want nil: no condition is left
		lossy       bool
	}{
		"another label":            {terms{{site}}, terms{{site}}, false},
		"the pools left out":       {terms{{pool("NotIn", "a", "b")}}, nil, false},
		"and other nodes":          {terms{{pool("NotIn", "a", "b", "windows"), site}}, terms{{pool("NotIn", "windows"), site}}, false},
		"one of two terms":         {terms{{pool("NotIn", "a", "b")}, {site}}, nil, false},
		"other nodes left out":     {terms{{pool("NotIn", "windows")}}, terms{{pool("NotIn", "windows")}}, false},
		"nodes without the label":  {terms{{pool("DoesNotExist"), site}}, terms{{site}}, true},
		"nodes with another value": {terms{{pool("In", "general")}}, nil, true},
		"all pools and others":     {terms{{pool("In", "a", "b", "general")}}, terms{{pool("In", "a", "b", "general")}}, false},
		"every node with it":       {terms{{pool("Exists")}}, terms{{pool("Exists")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &v1alpha1.Affinity{NodeAffinity: &v1alpha1.NodeAffinity{Required: &v1alpha1.NodeSelector{}}}
			for _, expressions := range test.given {
				a.NodeAffinity.Required.NodeSelectorTerms = append(a.NodeAffinity.Required.NodeSelectorTerms, v1alpha1.NodeSelectorTerm{MatchExpressions: expressions})
			}
			if got := sets.withoutPools(a); got != test.lossy {
				t.Errorf("lossy is %t, want %t", got, test.lossy)
			}
			var got terms
			if a.NodeAffinity != nil {
				for _, term := range a.NodeAffinity.Required.NodeSelectorTerms {
					got = append(got, term.MatchExpressions)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPoolHasANameThatABundleTakes(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"pool", "gpu", "gpu"},
		{"pool", "GPU_large.2", "gpu-large-2"},
		{"node-role.kubernetes.io/gpu", "", "gpu"},
		{"example.com/storage", "true", "storage"},
		{"pool", "a-name-that-is-longer-than-all-names-of-pools", "a-name-that-is-longer-than-all-names-o"},
		{"pool", "-", "pool"},
	} {
		if got := poolName(test.key, test.value, map[string]bool{}); got != test.want {
			t.Errorf("%s=%s: want %s, got %s", test.key, test.value, test.want, got)
		}
	}
	if got := poolName("pool", "gpu", map[string]bool{"gpu": true, "gpu-b": true}); got != "gpu-c" {
		t.Errorf("want a name that no other pool has, got %s", got)
	}
}
