//go:build cluster

package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// wrongCredentials has the controller use a Secret with a wrong application credential. The new pod does not become ready, so the rollout stops. The
// other one works, also while a claim needs it.
func wrongCredentials(t *testing.T, c *cluster) {
	const deployment, secret = "deployment/cinder-csi-controller", "wrong-credentials"
	in := "--namespace=" + namespaces["controller"]
	text := testenv.Value(base64.StdEncoding.DecodeString(c.kubectl(t, "get", "secret", "cinder-csi-credentials", in, "-o", `jsonpath={.data.clouds\.yaml}`)))(t)
	wrong := base64.StdEncoding.EncodeToString([]byte(wrongSecret(t, string(text))))
	c.apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, data: {clouds.yaml: %s}}", secret, namespaces["controller"], wrong))
	before := c.controllerPods(t)
	t.Cleanup(func() {
		for _, args := range [][]string{
			{"rollout", "undo", deployment, in}, {"rollout", "status", deployment, in, atMost}, {"delete", "secret", secret, in},
		} {
			if _, _, err := c.try(context.Background(), "", "kubectl", args...); err != nil {
				t.Error(err)
			}
		}
	})
	c.kubectl(t, "patch", deployment, in, "--patch", fmt.Sprintf(`{"spec":{"template":{"spec":{"volumes":[{"name":"cloud","projected":{"sources":[{"secret":{"name":%q,"items":[{"key":"clouds.yaml","path":"clouds.yaml"}]}}]}}]}}}}`, secret))
	stopped := func() error {
		var old, fresh []string
		for name, state := range c.controllerPods(t) {
			if _, known := before[name]; known {
				old = append(old, state)
			} else {
				fresh = append(fresh, state)
			}
		}
		if !slices.Equal(old, []string{"Running, ready True"}) || !slices.Equal(fresh, []string{"Running, ready False"}) {
			return fmt.Errorf("want one old pod that is ready and one new pod that runs and is not, got %q and %q", old, fresh)
		}
		return nil
	}
	eventually(t, patience, "the rollout stopped at its first pod", stopped)
	// The new pod runs, and has this time to become ready.
	if _, _, err := c.try(t.Context(), "", "kubectl", "rollout", "status", deployment, in, "--timeout=60s"); err == nil {
		t.Fatal("the rollout is complete, although its pods cannot log in")
	}
	testenv.Must(t, stopped())
	began := time.Now()
	c.start(t, []claim{{name: "meanwhile", gib: 1}}, pod{name: "meanwhile", claim: "meanwhile"})
	c.measured("claim and pod ready meanwhile", began)
}

// wrongSecret is a clouds.yaml whose application credential has another secret.
func wrongSecret(t *testing.T, text string) string {
	t.Helper()
	const key = "application_credential_secret:"
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if before, _, found := strings.Cut(line, key); found {
			lines[i] = before + key + " wrong"
			return strings.Join(lines, "\n")
		}
	}
	t.Fatalf("clouds.yaml has no %s", key)
	return ""
}

// controllerPods are the controller pods that are not being deleted, and the state of each.
func (c *cluster) controllerPods(t *testing.T) map[string]string {
	t.Helper()
	pods := map[string]string{}
	const fields = `jsonpath={range .items[*]}{.metadata.name},{.metadata.deletionTimestamp},{.status.phase},{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`
	for line := range strings.Lines(c.kubectl(t, "get", "pods", "--namespace="+namespaces["controller"], "--selector=app=cinder-csi-controller", "-o", fields)) {
		if words := strings.Split(strings.TrimSpace(line), ","); words[1] == "" {
			pods[words[0]] = words[2] + ", ready " + words[3]
		}
	}
	return pods
}
