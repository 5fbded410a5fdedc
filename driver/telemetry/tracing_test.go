package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestTracingIsOnlyOnWithAnEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		env     map[string]string
		on      bool
		message string // part of the error
	}{
		"nothing is set":        {env: map[string]string{}},
		"an endpoint":           {env: map[string]string{otlpEndpoint: "http://127.0.0.1:1"}, on: true},
		"an endpoint of traces": {env: map[string]string{otlpTracesEndpoint: "http://127.0.0.1:1/v1/traces"}, on: true},
		"switched off":          {env: map[string]string{otlpEndpoint: "http://127.0.0.1:1", sdkDisabled: "true"}},
		"a protocol by name":    {env: map[string]string{otlpEndpoint: "http://127.0.0.1:1", otlpProtocol: "http/protobuf"}, on: true},
		"another protocol":      {env: map[string]string{otlpEndpoint: "http://127.0.0.1:1", otlpProtocol: "grpc"}, message: "4318"},
	} {
		t.Run(name, func(t *testing.T) {
			tracing, err := StartTracing(t.Context(), func(key string) string { return test.env[key] }, "cinder.csi.openstack.org", "v1")
			if (tracing != nil) != test.on || (err != nil) != (test.message != "") || err != nil && !strings.Contains(err.Error(), test.message) {
				t.Errorf("want on %v and error %q, got %v, %v", test.on, test.message, tracing, err)
			}
			_ = tracing.Stop(t.Context())
		})
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	var posts atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" && r.Header.Get("Content-Type") == "application/x-protobuf" {
			posts.Add(1)
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	t.Setenv(otlpEndpoint, collector.URL)
	tracing, err := StartTracing(t.Context(), func(key string) string { return map[string]string{otlpEndpoint: collector.URL}[key] }, "d", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.provider.Tracer("test").Start(t.Context(), "x")
	span.End()
	if err := tracing.Stop(t.Context()); err != nil || posts.Load() != 1 {
		t.Errorf("%d posts, %v", posts.Load(), err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestARequestIsASpanInsideTheSpanOfItsRPCAndCarriesNoTraceContext(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracing := newTracing(sdktrace.WithSyncer(spans))
	ctx, rpc := tracing.provider.Tracer("test").Start(context.Background(), "csi.v1.Controller/CreateVolume")
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		if len(r.Header) != 1 || r.Header.Get("X-Auth-Token") != "secret-token" {
			t.Errorf("the cloud got %v", r.Header)
		}
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody, Request: r}, nil
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud/volume/v3/project/volumes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "secret-token")
	resp, err := tracing.Transport(next).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	rpc.End()
	got := spans.GetSpans()
	if len(got) != 2 || got[0].Name != "openstack volume_create" || got[0].Parent.SpanID() != got[1].SpanContext.SpanID() {
		t.Fatalf("got %+v", got)
	}
	for _, a := range got[0].Attributes {
		if strings.Contains(a.Value.String(), "secret-token") {
			t.Errorf("%s holds the token", a.Key)
		}
	}
	var off *Tracing
	if off.Transport(next) == nil || off.ServerOption() == nil || off.Stop(ctx) != nil {
		t.Error("without tracing")
	}
}
