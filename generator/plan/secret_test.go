package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A bundle is in a repository, and its values are in ConfigMaps. Every text that a person may write is checked for a secret, and no message
// repeats the secret.
func TestNoTextOfAConfigurationHoldsASecret(t *testing.T) {
	const secret = "hunter2"
	url := "postgres://user:" + secret + "@db.example.com/x"
	for spec, key := range map[string]string{
		"roles: {controller: {env: {OS_PASSWORD: %s}}}":                                "spec.roles.controller.env.OS_PASSWORD",
		"roles: {controller: {env: {OS_APPLICATION_CREDENTIAL_SECRET: %s}}}":           "spec.roles.controller.env.OS_APPLICATION_CREDENTIAL_SECRET",
		"roles: {node: {env: {OS_TOKEN: %s}}}":                                         "spec.roles.node.env.OS_TOKEN",
		"roles: {node: {env: {DB_PASSWORD: %s}}}":                                      "spec.roles.node.env.DB_PASSWORD",
		"roles: {node: {env: {DATABASE: '" + url + "'}}}":                              "spec.roles.node.env.DATABASE",
		"roles: {controller: {env: {ALL_PROXY: 'user:%s@proxy'}}}":                     "spec.roles.controller.env.ALL_PROXY",
		"roles: {controller: {env: {all_proxy: 'user:p@%s@proxy:3128'}}}":              "spec.roles.controller.env.all_proxy",
		"roles: {node: {podAnnotations: {example.com/db: '" + url + "'}}}":             "spec.roles.node.podAnnotations.example.com/db",
		"roles: {node: {podAnnotations: {example.com/password: %s}}}":                  "spec.roles.node.podAnnotations.example.com/password",
		"roles: {controller: {podLabels: {password: %s}}}":                             "spec.roles.controller.podLabels.password",
		"roles: {controller: {proxy: {http: 'http://u:%s@proxy:3128'}}}":               "spec.roles.controller.proxy.http",
		"driver: {extraArgs: {controller: ['--user-agent=https://u:%s@h']}}":           "spec.driver.extraArgs.controller[0]",
		"driver: {serverMetadata: {password: %s}}":                                     "spec.driver.serverMetadata.password",
		"driver: {volumeMetadata: {db-token: %s}}":                                     "spec.driver.volumeMetadata.db-token",
		"monitoring: {kind: PodMonitor, runbookBase: 'https://u:%s@docs.example.com'}": "spec.monitoring.runbookBase",
		"monitoring: {labels: {password: %s}}":                                         "spec.monitoring.labels.password",
		"storageClasses: {overrides: {fast: {parameters: {metadata.password: %s}}}}":   "spec.storageClasses.overrides.fast.parameters.metadata.password",
		"storageClasses: {overrides: {fast: {annotations: {example.com/passwd: %s}}}}": "spec.storageClasses.overrides.fast.annotations.example.com/passwd",
		"storageClasses: {extra: [{name: x, mountOptions: ['" + url + "']}]}":          "spec.storageClasses.extra[0].mountOptions[0]",
		"snapshots: {classes: {x: {annotations: {a: '" + url + "'}}}}":                 "spec.snapshots.classes.x.annotations.a",
		"attributesClasses: {x: {metadata: {password: %s}}}":                           "spec.attributesClasses.x.metadata.password",
		"images: {driver: {repository: 'https://u:%s@registry/x'}}":                    "spec.images.driver.repository",
		"clusterID: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.%s":                       "spec.clusterID",
	} {
		_, err := Decide(cloudOf("fast"), configured(t, "spec: {"+strings.ReplaceAll(spec, "%s", secret)+"}"), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if problem := (*ConfigError)(nil); !errors.As(err, &problem) || !strings.Contains(err.Error(), key+": ") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: want a refusal that names %s and not the value, got %v", spec, key, err)
		}
	}
}

// Names that only sound like secrets are usual in annotations and metadata.
func TestANameLikeThatOfASecretIsNone(t *testing.T) {
	for _, spec := range []string{
		"roles: {node: {podAnnotations: {checksum/secret: abc, vault.hashicorp.com/agent-inject-token: 'true', secret.reloader.stakater.com/reload: cloud}}}",
		"roles: {node: {podAnnotations: {vault.hashicorp.com/agent-inject-template-ca: '{{ with secret }}'}, env: {API_TOKEN_FILE: /run/token}}}",
		"driver: {volumeMetadata: {billing-key: '42', keystone-domain: x}, serverMetadata: {turkey: x}}",
		"roles: {node: {env: {ENDPOINT: 'https://user@example.com:8443/a:b@c'}}}",
		"credentials: {secretName: cloud-credentials, key: clouds.yaml}",
	} {
		if _, err := Decide(cloudOf("fast"), configured(t, "spec: {"+spec+"}"), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
