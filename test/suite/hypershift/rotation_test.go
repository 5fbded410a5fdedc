//go:build hypershift

package hypershift

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The test replaces everything that the pod of the controller logs in with, each while claims are being served. First the credential of OpenStack,
// as HyperShift writes it and as the Cloud Credential Operator does. Then the certificate authority of OpenStack, and the kubeconfig of the guest.
// The old credential is deleted each time. No container restarts and no RPC fails.
func TestCredentialsAreReplacedWithoutARestart(t *testing.T) {
	h := startHosted(t)
	p := h.install(t, modeToken, 0)
	h.guest.kubectl(t, "create", "namespace", space)
	h.guest.kubectl(t, "wait", "--namespace="+space, "--for=create", "serviceaccount/default", "--timeout=30s")
	r := &rotation{hosted: h}

	t.Log("HyperShift replaces the Secret")
	r.replaceCredential(t, func() { h.secrets(t) })
	t.Log("the Cloud Credential Operator writes one key")
	r.replaceCredential(t, func() {
		patch := testenv.Value(json.Marshal(map[string]any{"stringData": map[string]string{"clouds.yaml": h.openstack.cloudsYAML(h.credential)}}))(t)
		h.management.kubectl(t, "patch", "secret", "tenant-a-cloud-credentials", "--namespace="+hostedNamespace, "--type=merge", "-p", string(patch))
	})
	t.Log("OpenStack gets a certificate of another authority")
	r.replaceAuthority(t)
	t.Log("HyperShift replaces the kubeconfig of the guest")
	r.replaceKubeconfig(t)

	h.gone(t)
	if n := p.restarted(); len(n) > 0 {
		t.Errorf("containers ended by themselves: %v", n)
	}
	rpcs, failed := 0, []string{}
	for line, n := range metrics(t, p, "cinder_csi_rpc_duration_seconds_count{") {
		rpcs += n
		if !strings.Contains(line, `code="OK"`) && n > 0 {
			failed = append(failed, fmt.Sprintf("%s %d", line, n))
		}
	}
	if len(failed) > 0 || r.reload("failure") > 0 {
		t.Errorf("RPCs failed: %q; failed reloads: %d", failed, r.reload("failure"))
	}
	t.Logf("measured: %d RPCs, %d failed, %d reloads of the configuration, no restart", rpcs, len(failed), r.reload("success"))
}

// rotation is the state of the test.
type rotation struct {
	*hosted
	claims int
	t      *testing.T
}

// begin creates three claims with pods, which are served while something is replaced.
func (r *rotation) begin(t *testing.T) (finish func()) {
	t.Helper()
	r.t = t
	var names []string
	for range 3 {
		r.claims++
		name := fmt.Sprintf("claim-%d", r.claims)
		names = append(names, name)
		r.claim(t, name, "1Gi", "")
	}
	return func() {
		for _, name := range names {
			r.attached(t, name)
		}
		r.guest.kubectl(t, "delete", "pods", "--all", "--force", "--grace-period=0", "--namespace="+space)
		r.guest.kubectl(t, "delete", "pvc", "--all", "--namespace="+space, "--timeout=180s")
	}
}

// loaded brings the volumes of the pod up to date and waits until the driver has loaded them.
func (r *rotation) loaded(t *testing.T) {
	t.Helper()
	before := r.reload("success")
	r.pod.sync(t)
	eventually(t, 2*time.Minute, "the reload", func() error {
		if r.reload("success") == before {
			return fmt.Errorf("%d reloads, as before; %d failed", before, r.reload("failure"))
		}
		return nil
	})
}

func (r *rotation) replaceCredential(t *testing.T, update func()) {
	t.Helper()
	finish := r.begin(t)
	old := r.credential
	r.credential = r.openstack.newCredential(t)
	update()
	r.loaded(t)
	r.openstack.deleteCredential(old)
	finish()
	r.begin(t)()
}

func (r *rotation) replaceAuthority(t *testing.T) {
	t.Helper()
	finish := r.begin(t)
	next := newAuthority(t)
	r.trust(t, r.authority, next)
	r.loaded(t)
	r.openstack.serve(t, next)
	finish()
	r.trust(t, next)
	r.loaded(t)
	r.authority = next
	r.begin(t)()
}

func (r *rotation) replaceKubeconfig(t *testing.T) {
	t.Helper()
	finish := r.begin(t)
	token := filepath.Join(r.pod.root, "volumes", "hosted-kubeconfig", "token")
	old := testfile.Read(t, token)
	r.adminKubeconfig(t)
	r.pod.sync(t)
	eventually(t, time.Minute, "another token", func() error {
		text, err := os.ReadFile(token)
		if err == nil && string(text) == string(old) {
			err = fmt.Errorf("the token is the old one")
		}
		return err
	})
	finish()
	r.begin(t)()
}

func (r *rotation) reload(result string) int {
	for line, n := range metrics(r.t, r.pod, "cinder_csi_config_reloads_total{") {
		if strings.Contains(line, `result="`+result+`"`) {
			return n
		}
	}
	return 0
}

// metrics are the series of the driver that begin with a text.
func metrics(t *testing.T, p *pod, prefix string) map[string]int {
	t.Helper()
	resp := testenv.Value(http.Get("http://" + p.address + ":8080/metrics"))(t)
	defer resp.Body.Close()
	page := testenv.Value(io.ReadAll(resp.Body))(t)
	series := map[string]int{}
	for line := range strings.Lines(string(page)) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, prefix) && at > 0 {
			n := testenv.Value(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64))(t)
			series[line[:at]] = int(n)
		}
	}
	return series
}
