package cli

import (
	"strings"
	"testing"
)

const caWarned = "Warning: this login trusts the CA file "

// A login with a CA of one's own says that the pods need it too, unless the configuration names one or an operator brings it.
func TestALoginWithACAFileWarnsWhereThePodsWouldNotTrustIt(t *testing.T) {
	b := newBed(t)
	ca := b.file(t, "ca.pem", "")
	for name, tc := range map[string]struct {
		target, config string
		flags          []string
		warned         bool
	}{
		"nobody brings it":               {"vanilla", "spec: {}", []string{"--os-cacert", ca}, true},
		"no CA file":                     {"vanilla", "spec: {}", nil, false},
		"caConfigMap":                    {"vanilla", "spec: {credentials: {caConfigMap: ours}}", []string{"--os-cacert", ca}, false},
		"caKey":                          {"vanilla", "spec: {credentials: {caKey: cacert}}", []string{"--os-cacert", ca}, false},
		"the operator brings it":         {"standalone", "spec: {}", []string{"--os-cacert", ca}, false},
		"trustedCA":                      {"standalone", "spec: {trustedCA: true, credentials: {request: disabled}}", []string{"--os-cacert", ca}, false},
		"a person makes the Secret":      {"standalone", "spec: {credentials: {request: disabled}}", []string{"--os-cacert", ca}, true},
		"HyperShift brings it":           {"hypershift", "spec: {hypershift: {platform: OpenStack}}", []string{"--os-cacert", ca}, false},
		"a platform that does not bring": {"hypershift", "spec: {hypershift: {platform: None}}", []string{"--os-cacert", ca}, true},
	} {
		config := b.file(t, "config.yaml", "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\n"+tc.config)
		_, stderr, code := b.run(t, append([]string{"plan", "--os-cloud", "sim-demo", "--target", tc.target, "--config", config}, tc.flags...)...)
		if code != OK || strings.Contains(stderr, caWarned+ca) != tc.warned {
			t.Errorf("%s: exit %d, want a warning %v: %s", name, code, tc.warned, stderr)
		}
	}
}
