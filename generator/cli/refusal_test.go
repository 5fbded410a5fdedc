package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A pipeline takes exit 1 for an outage, so what a person has to correct in the configuration must never end with it.
func TestAConfigurationThatCannotWorkIsInvalidInBothFormats(t *testing.T) {
	b := newBed(t)
	for spec, want := range map[string]string{
		"roles: {controller: {runAsUser: 0}}":                                  "spec.roles.controller.runAsUser",
		"roles: {node: {podLabels: {app: y}}}":                                 "spec.roles.node.podLabels",
		"roles: {controller: {resources: {driver: {limits: {memory: much}}}}}": "spec.roles.controller.resources.driver.limits.memory",
		"images: {driver: {registry: my registry}}":                            "spec.images.driver.registry",
		"clusterID: 'a${b}'":                                                   "spec.clusterID",
		"credentials: {caBundle: 'password: hunter2'}":                         "spec.credentials.caBundle",
		"storageClasses: {overrides: {fast: {mountOptions: ['']}}}":            "spec.storageClasses.overrides.fast.mountOptions[0]",
		"storageClasses: {overrides: {fast: {annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}}}": "spec.storageClasses.overrides.fast.annotations",
	} {
		config := b.file(t, "config.yaml", "spec:\n  "+spec+"\n")
		for _, format := range formats {
			dir := filepath.Join(b.dir, format)
			stdout, stderr, code := b.run(t, generation("vanilla", format, dir, "--config", config)...)
			if code != Usage || !strings.Contains(stderr, want) || stdout != "" {
				t.Errorf("%s, %s: want exit %d and %s on stderr, got %d, %q, %q", spec, format, Usage, want, code, stdout, stderr)
			}
			if len(files(t, dir)) > 0 || strings.Contains(stderr, "hunter2") {
				t.Errorf("%s, %s: something was written, or a secret printed: %s", spec, format, stderr)
			}
		}
	}
}

func TestNamesThatLookLikeNumbersMakeAHelmBundle(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "config.yaml", `spec:
  credentials: {secretName: "123"}
  namespaces: {controller: "1e3", node: "2"}
  driver: {name: "1e3"}
  roles: {controller: {imagePullSecrets: ["123"]}}
`)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir, "--config", config)...)
	b.ok(t, "validate", dir)
}
