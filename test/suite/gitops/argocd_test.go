//go:build gitops

package gitops

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// argoCD is the controller of Applications, the server that builds what Git has, and the cache of both.
type argoCD struct{ *server }

func startArgoCD(t *testing.T) *argoCD {
	s := start(t)
	// The CRD of ApplicationSets is too large for the annotation of a client-side apply.
	s.run(t, "bash", "-c", `for file in "$0"/*-crd.yaml; do kubectl apply --server-side -f "$file"; done`, filepath.Join(cache("src"), "argo-cd/manifests/crds"))
	s.eventually(t, time.Minute, "the API server knows Applications", func() error { return s.quiet("kubectl", "get", "applications,appprojects,applicationsets") })
	s.Write(t, "argocd.yaml", `
{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}, stringData: {server.secretkey: any}}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`)
	s.run(t, "kubectl", "apply", "-f", "argocd.yaml")
	port := func() string { return controlplane.FreePort(t, "127.0.0.1") }
	redis, builder := port(), port()
	libraries := cache("redis/usr/lib/x86_64-linux-gnu")
	s.program(t, cache("redis/usr/bin/redis-server"), []string{"LD_LIBRARY_PATH=" + libraries}, "--bind", "127.0.0.1", "--port", redis, "--save", "", "--dir", s.Dir)
	for _, dir := range []string{"tls", "ssh", "tmp"} {
		testenv.Must(t, os.MkdirAll(s.Path("app/"+dir), 0o700))
	}
	// In the cluster the API server is https://kubernetes.default.svc, the destination of the example.
	env := []string{
		"ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_GPG_ENABLED=false", "ARGOCD_TLS_DATA_PATH=" + s.Path("app/tls"), "ARGOCD_SSH_DATA_PATH=" + s.Path("app/ssh"),
		"TMPDIR=" + s.Path("app/tmp"),
	}
	at := func(port string) string { return net.JoinHostPort("127.0.0.1", port) }
	s.program(t, cache("bin/argocd-repo-server"), env, "--redis="+at(redis), "--port="+builder, "--metrics-port="+port(), "--address=127.0.0.1", "--disable-tls", "--client-ca-path=")
	s.program(t, cache("bin/argocd-application-controller"), env, "--redis="+at(redis), "--repo-server="+at(builder), "--repo-server-plaintext",
		"--metrics-port="+port(), "--namespace=argocd", "--kubeconfig="+s.Path("kubeconfig"))
	return &argoCD{s}
}

func (a *argoCD) apply(t *testing.T) {
	a.run(t, "kubectl", "apply", "-f", a.example(t, "argocd/application.yaml"))
}

func (a *argoCD) refresh(t *testing.T) {
	a.run(t, "kubectl", "annotate", "--overwrite", "-n", "argocd", "application/cinder-csi", "argocd.argoproj.io/refresh=normal")
}

func (a *argoCD) ready() error {
	out, messages, err := a.Try("kubectl", "get", "-n", "argocd", "application/cinder-csi", "-o", "json")
	if err != nil {
		return fmt.Errorf("%w: %s", err, messages)
	}
	var app struct {
		Metadata struct{ Annotations map[string]string }
		Status   struct {
			Sync           struct{ Status, Revision string }
			Health         struct{ Status string }
			Conditions     []struct{ Message string }
			OperationState struct{ Phase, Message string }
			Resources      []struct {
				Kind, Name, Status string
				Health             struct{ Status string }
				RequiresPruning    bool
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &app); err != nil {
		return err
	}
	head, _, _ := a.Try("git", "-C", "clusters", "rev-parse", "HEAD")
	st := app.Status
	_, refreshing := app.Metadata.Annotations["argocd.argoproj.io/refresh"]
	var others, ill []string
	for _, r := range st.Resources {
		// An object that is kept although the bundle no longer has it stays out of sync.
		if r.Status != "Synced" && !r.RequiresPruning {
			others = append(others, r.Kind+"/"+r.Name)
		}
		if r.Health.Status != "" && r.Health.Status != "Healthy" {
			ill = append(ill, r.Kind+"/"+r.Name+" "+r.Health.Status)
		}
	}
	if refreshing || len(others) > 0 || len(st.Resources) == 0 || st.Health.Status != "Healthy" || st.Sync.Revision != strings.TrimSpace(head) || st.OperationState.Phase == "Running" {
		return fmt.Errorf("sync %s at %s, health %s, operation %s: %s; out of sync %v, not healthy %v; conditions %v",
			st.Sync.Status, st.Sync.Revision, st.Health.Status, st.OperationState.Phase, st.OperationState.Message, others, ill, st.Conditions)
	}
	return nil
}

func (a *argoCD) appliesTheRest() bool { return true }

func (a *argoCD) prunes() bool { return true }

// remove is what `argocd app delete` does without --cascade=false.
func (a *argoCD) remove(t *testing.T) {
	a.run(t, "kubectl", "patch", "application", "-n", "argocd", "cinder-csi", "--type=merge", "-p", `{"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}`)
	a.run(t, "kubectl", "delete", "application", "-n", "argocd", "cinder-csi", "--timeout=2m")
}

func TestArgoCDAppliesTheExample(t *testing.T) {
	a := startArgoCD(t)
	tell(t, a.server, a)
}
