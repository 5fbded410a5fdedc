//go:build apiserver

package apiserver

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// startKubelet serves the part of kubelet that forwards ports. It connects to this machine in place of the pod, from a loopback address as
// kubelet does. It returns its port.
func startKubelet(t *testing.T) int {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		streams := make(chan httpstream.Stream, 8)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if connection == nil {
			return
		}
		defer connection.Close()
		for {
			select {
			case s := <-streams:
				if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
					go forward(s)
				} else {
					_ = s.Close()
				}
			case <-connection.CloseChan():
				return
			}
		}
	}))
	t.Cleanup(kubelet.Close)
	_, port, _ := net.SplitHostPort(kubelet.Listener.Addr().String())
	n := testenv.Value(strconv.Atoi(port))(t)
	return n
}

func forward(s httpstream.Stream) {
	defer s.Close()
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.Headers().Get(corev1.PortHeader))
	if err != nil {
		return
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(conn, s) }()
	_, _ = io.Copy(s, conn)
}
