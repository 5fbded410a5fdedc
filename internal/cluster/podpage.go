package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/portforward"
	forward "k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// maxPage is the most that is read of a page of a pod, in bytes.
const maxPage = 4 << 20

// PodPage reads a page that a pod serves to itself only. The API server forwards the port, as for kubectl port-forward, but nothing
// listens on this machine. It needs the right to get pods/portforward, and Kubernetes 1.31 or newer, which forwards over a WebSocket.
// Errors: ErrNotFound, ErrDenied, ErrUnreachable.
func (c *Cluster) PodPage(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
	place := "pod " + namespace + "/" + pod + " port " + strconv.Itoa(port) + path
	if c.config == nil {
		return nil, c.failed(place, fmt.Errorf("%w: no port can be forwarded over this connection", ErrUnreachable))
	}
	connection, err := c.dialPod(ctx, namespace, pod)
	if err != nil {
		return nil, c.failed(place, err)
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	page, err := readPage(ctx, connection, port, path)
	if err != nil {
		return nil, c.failed(place, fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
	return page, nil
}

// dialPod returns when ctx ends, though the dialer itself takes no context.
func (c *Cluster) dialPod(ctx context.Context, namespace, pod string) (httpstream.Connection, error) {
	type dialed struct {
		connection httpstream.Connection
		err        error
	}
	u := c.base.JoinPath("/api/v1/namespaces", url.PathEscape(namespace), "pods", url.PathEscape(pod), "portforward")
	dialer, err := forward.NewSPDYOverWebsocketDialerForStreaming(u, c.config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	answer := make(chan dialed, 1)
	go func() {
		connection, _, err := dialer.Dial(portforward.PortForwardV1Name)
		answer <- dialed{connection, err}
	}()
	select {
	case d := <-answer:
		return d.connection, dialError(d.err)
	case <-ctx.Done():
		go func() {
			if d := <-answer; d.err == nil {
				_ = d.connection.Close()
			}
		}()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
}

// dialError gives a refused upgrade its kind. The API server answers with a status in place of the upgrade.
func dialError(err error) error {
	var upgrade *httpstream.UpgradeFailureError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &upgrade) && containsAny(err.Error(), "403", "401", "forbidden"):
		return fmt.Errorf("%w: %s", ErrDenied, cloud.Public(err.Error()))
	case errors.As(err, &upgrade) && containsAny(err.Error(), "404", "not found"):
		return fmt.Errorf("%w: %s", ErrNotFound, cloud.Public(err.Error()))
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, cloud.Public(err.Error()))
}

// readPage sends one GET over a forwarded port.
func readPage(ctx context.Context, connection httpstream.Connection, port int, path string) ([]byte, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failure, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = failure.Close() // only kubelet writes to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true
	if err := request.Write(data); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(data), request)
	if err != nil {
		return nil, fmt.Errorf("the pod does not answer: %w%s", err, refusal(failure))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxPage:
		return nil, errTooLarge
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the pod answers HTTP %d", response.StatusCode)
	}
	return body, nil
}

// refusal is what kubelet says about a port that it cannot reach.
func refusal(failure io.Reader) string {
	text, err := io.ReadAll(io.LimitReader(failure, 1000))
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; kubelet says: " + cloud.Public(string(text))
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
