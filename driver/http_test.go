package driver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

func TestReadinessDependsOnTheCloudAndHealthDoesNot(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want map[string]int
	}{
		"the cloud answers":     {nil, map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200, "/": 404}},
		"the cloud is not here": {errors.New("no answer from Keystone"), map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 503}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				registry.MustRegister(collectors.NewGoCollector())
				ctx, stop := context.WithCancel(t.Context())
				listener, ended := memnet.Listen(), make(chan error, 1)
				ready := func(context.Context) error { return test.err }
				go func() { ended <- serveHTTP(ctx, listener, registry, ready) }()
				client := http.Client{Transport: &http.Transport{DialContext: listener.DialContext}}
				for path, want := range test.want {
					resp, err := client.Get("http://driver" + path)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != want {
						t.Errorf("%s: want %d, got %d", path, want, resp.StatusCode)
					}
				}
				client.CloseIdleConnections()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
