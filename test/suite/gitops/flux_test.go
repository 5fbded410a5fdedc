//go:build gitops

package gitops

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
)

// flux is the pair of controllers that the example needs.
type flux struct {
	*server
	prune bool // as many people set it
}

func startFlux(t *testing.T) *flux {
	s := start(t)
	for _, name := range []string{"kustomize", "source"} {
		s.run(t, "bash", "-c", `kubectl apply --server-side -f "$0"`, filepath.Join(cache("src"), name+"-controller", "config/crd/bases"))
	}
	s.run(t, "kubectl", "create", "namespace", "flux-system")
	address := func() string { return net.JoinHostPort("127.0.0.1", controlplane.FreePort(t, "127.0.0.1")) }
	storage := address()
	env := []string{"RUNTIME_NAMESPACE=flux-system"}
	common := func() []string {
		return []string{"--metrics-addr=" + address(), "--health-addr=" + address(), "--log-level=info"}
	}
	s.program(t, cache("bin/source-controller"), env, append(common(), "--storage-path="+t.TempDir(), "--storage-addr="+storage, "--storage-adv-addr="+storage)...)
	s.program(t, cache("bin/kustomize-controller"), env, append(common(), "--requeue-dependency=5s")...)
	return &flux{server: s}
}

func (f *flux) apply(t *testing.T) {
	f.run(t, "kubectl", "apply", "-f", f.example(t, "flux/cinder-csi.yaml"))
	if f.prune {
		f.run(t, "kubectl", "patch", "kustomization", "-n", "flux-system", "cinder-csi", "--type=merge", "-p", `{"spec": {"prune": true}}`)
	}
}

func (f *flux) refresh(t *testing.T) {
	now := fmt.Sprint("reconcile.fluxcd.io/requestedAt=", time.Now().UnixNano())
	for _, o := range []string{"gitrepository/clusters", "kustomization/cinder-csi"} {
		f.run(t, "kubectl", "annotate", "--overwrite", "-n", "flux-system", o, now)
		if o == "gitrepository/clusters" {
			f.eventually(t, time.Minute, "Flux has fetched", func() error {
				want := f.get("-n", "flux-system", o, `{.metadata.annotations.reconcile\.fluxcd\.io/requestedAt}`)
				if got := f.get("-n", "flux-system", o, "{.status.lastHandledReconcileAt}"); got != want {
					return fmt.Errorf("handled %s, asked %s", got, want)
				}
				return nil
			})
		}
	}
}

func (f *flux) ready() error {
	of := []string{"-n", "flux-system", "kustomization/cinder-csi"}
	state := f.get(append(of, `{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}`)...)
	head, _, _ := f.Try("git", "-C", "clusters", "rev-parse", "HEAD")
	applied := f.get(append(of, "{.status.lastAppliedRevision}")...)
	handled, asked := f.get(append(of, "{.status.lastHandledReconcileAt}")...), f.get(append(of, `{.metadata.annotations.reconcile\.fluxcd\.io/requestedAt}`)...)
	if len(state) < 4 || state[:4] != "True" || applied != "main@sha1:"+head[:len(head)-1] || handled != asked {
		return fmt.Errorf("applied %s of %s: %s", applied, head, state)
	}
	return nil
}

func (f *flux) appliesTheRest() bool { return false }

func (f *flux) prunes() bool { return f.prune }

func (f *flux) remove(t *testing.T) {
	if !f.prune {
		t.Log("Flux leaves everything there, as the example has prune: false; so the workloads are deleted by hand")
		f.run(t, "kubectl", "delete", "kustomization", "-n", "flux-system", "cinder-csi")
		f.there(t, kept...)
		f.run(t, "kubectl", "delete", "-n", "cinder-csi", deployment)
		f.run(t, "kubectl", "delete", "-n", "cinder-csi-node", daemonSet)
		return
	}
	f.run(t, "kubectl", "delete", "kustomization", "-n", "flux-system", "cinder-csi")
}

func TestFluxAppliesTheExample(t *testing.T) {
	f := startFlux(t)
	tell(t, f.server, f)
}

// With prune: true Flux deletes what a bundle no longer has, but not what existing volumes need.
func TestFluxThatPrunesKeepsWhatVolumesNeed(t *testing.T) {
	f := startFlux(t)
	f.prune = true
	tell(t, f.server, f)
}
