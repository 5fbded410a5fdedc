package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestANodePoolThatCannotWorkIsRefused(t *testing.T) {
	const path = "spec.nodePools[0]"
	for spec, want := range map[string][]string{
		"[{name: gpu, nodeSelector: {pool: gpu}, tolerations: [], volumeAttachLimit: 256, kubeletDir: /var/lib/k0s/kubelet}]": nil,
		"[{name: a, nodeSelector: {pool: a}}, {name: b, nodeSelector: {pool: b}}]":                                            nil,
		"[{name: A, nodeSelector: {pool: a}}]":                                           {path + `.name: "A"; want at most 40 lower-case letters, digits and '-'`},
		"[{name: a}]":                                                                    {path + ".nodeSelector: want one label, because the other DaemonSet leaves the nodes with it out"},
		"[{name: a, nodeSelector: {b: c, d: e}}]":                                        {path + ".nodeSelector: want one label, because the other DaemonSet leaves the nodes with it out"},
		"[{name: a, nodeSelector: {b: c}, volumeAttachLimit: 0}]":                        {path + ".volumeAttachLimit: 0; want 1 to 256"},
		"[{name: a, nodeSelector: {b: c}, volumeAttachLimit: 257}]":                      {path + ".volumeAttachLimit: 257; want 1 to 256"},
		"[{name: a, nodeSelector: {b: c}, kubeletDir: kubelet}]":                         {path + `.kubeletDir: "kubelet"; want an absolute path in its shortest form, such as /var/lib/k0s/kubelet`},
		"[{name: a, nodeSelector: {b: c}, tolerations: [{operator: Exists, value: x}]}]": {path + ".tolerations[0]: operator Exists takes no value"},
		"[{name: a, nodeSelector: {b: c}}, {name: a, nodeSelector: {b: d}}]":             {"spec.nodePools[1].name: spec.nodePools[0] has the name a too; their DaemonSets would be one"},
		"[{name: a, nodeSelector: {b: c}}, {name: b, nodeSelector: {b: c}}]":             {"spec.nodePools[1].nodeSelector: spec.nodePools[0] has the label b=c too; its nodes would run two of the driver"},
		"[{name: a, nodeSelector: {b: c}}, {name: b, nodeSelector: {d: c}}]":             {"spec.nodePools[1].nodeSelector: spec.nodePools[0] selects by another label than d; a node with both would run two of the driver. Give all pools one label with different values"},
		"[" + strings.Repeat("{name: a, nodeSelector: {b: c}},", maxPools+1) + "]":       {"spec.nodePools: has more than 100 items; pools with the same settings can be one, selected by a label that their nodes share"},
	} {
		_, err := Decide(cloudOf("standard"), configured(t, "spec: {nodePools: "+spec+"}"), v1alpha1.Vanilla, v1alpha1.Kustomize, "test")
		var wrong *ConfigError
		if errors.As(err, &wrong) != (want != nil) || wrong == nil && err != nil {
			t.Errorf("%s: want the problems %q, got %v", spec, want, err)
			continue
		}
		if wrong != nil {
			if diff := cmp.Diff(want, wrong.Problems); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", spec, diff)
			}
		}
	}
}

// The order of a list in the configuration is of no matter, so it must not be a difference either.
func TestNodePoolsAreSortedByName(t *testing.T) {
	r := decide(t, cloudOf("standard"), "spec: {nodePools: [{name: b, nodeSelector: {p: b}}, {name: a, nodeSelector: {p: a}}]}", v1alpha1.Vanilla)
	var names []string
	for _, d := range r.NodePools {
		names = append(names, d.ID)
	}
	if diff := cmp.Diff([]string{"nodePools.a", "nodePools.b"}, names); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}
