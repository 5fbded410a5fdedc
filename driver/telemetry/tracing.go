package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Tracing sends a span for each RPC and for each of its requests to OpenStack (OpenTelemetry). A nil Tracing traces nothing.
type Tracing struct{ provider *sdktrace.TracerProvider }

// The environment variables that switch tracing on (OpenTelemetry specification, "OpenTelemetry Protocol Exporter"). The exporter reads the other
// OTEL_EXPORTER_OTLP_* variables by itself, and the SDK reads OTEL_TRACES_SAMPLER and OTEL_RESOURCE_ATTRIBUTES.
const (
	otlpEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otlpTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otlpProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otlpTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	sdkDisabled        = "OTEL_SDK_DISABLED"
)

// StartTracing starts tracing if the environment names an endpoint; otherwise it returns nil. An endpoint that does not answer is no error: the spans
// are lost.
func StartTracing(ctx context.Context, env func(string) string, driverName, version string) (*Tracing, error) {
	if env(sdkDisabled) == "true" || env(otlpEndpoint) == "" && env(otlpTracesEndpoint) == "" {
		return nil, nil
	}
	for _, name := range []string{otlpTracesProtocol, otlpProtocol} {
		if protocol := env(name); protocol != "" && protocol != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q, and the driver sends traces by http/protobuf only; unset it, and give the collector's HTTP port (4318)", name, protocol)
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot start tracing: %w", err)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "cinder-csi-driver"), attribute.String("service.version", version), attribute.String("csi.driver.name", driverName),
	)
	if about, err = resource.Merge(about, resource.Environment()); err != nil { // the administrator's attributes win
		return nil, fmt.Errorf("cannot start tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return newTracing(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

func newTracing(options ...sdktrace.TracerProviderOption) *Tracing {
	return &Tracing{provider: sdktrace.NewTracerProvider(options...)}
}

// ServerOption makes a span of each RPC, but for those about the driver itself, which livenessprobe repeats all the time.
func (t *Tracing) ServerOption() grpc.ServerOption {
	if t == nil {
		return grpc.EmptyServerOption{}
	}
	ofObjects := func(info *stats.RPCTagInfo) bool {
		return info.FullMethodName != "/csi.v1.Identity/Probe" && info.FullMethodName != "/csi.v1.Node/NodeGetCapabilities"
	}
	return grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithFilter(ofObjects), otelgrpc.WithPropagators(propagation.TraceContext{})))
}

// Transport makes a span of each request, inside of the span of its RPC. It sends no trace context to the cloud.
func (t *Tracing) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return "openstack " + nameOf(r) }))
}

// stopTime is how long Stop may take: the process must end within the grace period of its pod.
const stopTime = 2 * time.Second

// Stop sends the spans that are left.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
