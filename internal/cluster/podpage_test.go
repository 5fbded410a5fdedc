package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// connectTo is a cluster with a configuration, as Connect makes it.
func connectTo(t *testing.T, handler http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := api.NewConfig()
	config.Clusters["a"] = &api.Cluster{Server: server.URL}
	config.Contexts["a"] = &api.Context{Cluster: "a"}
	config.CurrentContext = "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(Source{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The way through a real API server has its test in test/suite/apiserver.
func TestAPortThatCannotBeForwardedIsAnErrorOfItsKind(t *testing.T) {
	for status, want := range map[int]error{http.StatusUnauthorized: ErrDenied, http.StatusForbidden: ErrDenied, http.StatusNotFound: ErrNotFound, http.StatusBadGateway: ErrUnreachable} {
		var asked testenv.Asked
		c := connectTo(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(r.Method + " " + r.URL.Path)
			http.Error(w, "no", status)
		})
		_, err := c.PodPage(t.Context(), "cinder-csi", "pod-0", 8080, "/debug/operations")
		if !errors.Is(err, want) || !slices.Equal(asked.All(), []string{"GET /api/v1/namespaces/cinder-csi/pods/pod-0/portforward"}) {
			t.Errorf("HTTP %d: %s: want %v, got %v", status, asked.All(), want, err)
		}
	}
}

func TestAPortForwardEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	c := connectTo(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release) // the dialer takes no context: it keeps its connection until the server answers
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.PodPage(ctx, "cinder-csi", "pod-0", 8080, "/debug/operations"); !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("want the error of the context, got %v", err)
	}
}

func TestAClusterWithoutAConfigurationForwardsNoPort(t *testing.T) {
	c := serve(t, http.NotFound)
	if _, err := c.PodPage(t.Context(), "cinder-csi", "pod-0", 8080, "/"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("want ErrUnreachable, got %v", err)
	}
}
