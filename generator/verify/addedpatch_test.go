package verify_test

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// A patch that adds or copies can make a small bundle enormous, so only labels and the address of an alert's page may be added.
func TestAPatchAddsLabelsAndTheAddressOfAnAlertAndNothingElse(t *testing.T) {
	spec := v1alpha1.Spec{Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.PodMonitor, Alerts: true, RunbookBase: "https://git.example.com/p"}}
	const file = "driver/patches/runbook-controller.yaml"
	for name, change := range map[string]func(string) string{
		"as it is": func(text string) string { return text },
		"another place": func(text string) string {
			return strings.Replace(text, "annotations/runbook_url", "annotations/other", 1)
		},
		"an object": func(text string) string {
			return "- op: add\n  path: /spec/groups/0/rules/0/annotations/runbook_url\n  value: {a: b}\n"
		},
		"a copy": func(text string) string { return strings.Replace(text, "op: add", "op: copy", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := decide(t, spec, inventory("nova"), v1alpha1.Vanilla)
			tree := render(t, r, v1alpha1.Kustomize)
			before := string(tree[file])
			tree[file] = []byte(change(before))
			if changed := string(tree[file]) != before; changed == (name == "as it is") {
				t.Fatalf("not changed: %s", before)
			}
			_, findings, err := verify.Bundle(tree, r.Target, v1alpha1.Kustomize)
			refused := err != nil && strings.Contains(err.Error(), "patches only replace")
			if refused == (name == "as it is") {
				t.Errorf("refused %t: %v, %v", refused, findings, err)
			}
		})
	}
}
