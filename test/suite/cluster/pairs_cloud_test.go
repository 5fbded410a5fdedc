//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// pairCloud is what stands between the bundles of a row and OpenStack.
type pairCloud struct {
	ca    string // PEM; empty without TLS
	proxy *forwardProxy
}

// cloudOf brings OpenStack into the state of the row: with or without TLS, behind a proxy or not.
func (c *cluster) cloudOf(t *testing.T, s setting) *pairCloud {
	t.Helper()
	c.switchTLS(t, s.tls())
	cloud := &pairCloud{}
	if s.tls() {
		pem := testfile.Text(t, filepath.Join(c.openstack, "state", "tls", "ca.pem"))
		cloud.ca = pem
	}
	if s.on("proxy") {
		cloud.proxy = startProxy(t)
	}
	return cloud
}

// hasTLS is whether the public endpoints of the bed are behind TLS.
func (c *cluster) hasTLS(t *testing.T) bool {
	t.Helper()
	text := testfile.Text(t, filepath.Join(c.openstack, "clouds.yaml"))
	return strings.Contains(text, "auth_url: https:")
}

// switchTLS puts TLS before OpenStack, or takes it away.
func (c *cluster) switchTLS(t *testing.T, on bool) {
	t.Helper()
	if c.hasTLS(t) == on {
		return
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(c.repo, "test", "bed", "openstack", "up.sh"))
	cmd.Env = append(os.Environ(), "OPENSTACK_BED="+c.openstack, "BED_NODES_PER_AZ=2", "BED_TLS="+map[bool]string{true: "1", false: "0"}[on])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("switch TLS before OpenStack: %v\n%s", err, out)
	}
}

var cacertLine = regexp.MustCompile(`(?m)^    cacert: .*$`)

// writeFiles writes what the commands of the README name beside driver-clouds.yaml: the CA, and the credential that may only read.
func (p *pairCloud) writeFiles(t *testing.T, c *cluster, s setting) {
	t.Helper()
	text := testfile.Text(t, filepath.Join(c.openstack, "clouds.yaml"))
	reader := strings.Replace(text, "  lab-reader:", "  openstack:", 1)
	if s["openstack"] == "caSecret" { // as the README says for a private CA
		reader = cacertLine.ReplaceAllString(reader, "    cacert: /etc/cinder-csi/cloud/cacert")
	}
	for name, content := range map[string]string{"reader.yaml": reader, "ca.pem": p.ca} {
		testfile.Write(t, filepath.Join(c.work, name), content, 0o600)
	}
}

// checkProxied fails unless the proxy has passed requests to OpenStack, and was asked for nothing else.
func (p *pairCloud) checkProxied(t *testing.T) {
	t.Helper()
	p.proxy.Lock()
	defer p.proxy.Unlock()
	if p.proxy.passed == 0 {
		t.Error("the driver works, but no request went through the proxy")
	}
	for host, n := range p.proxy.refused {
		t.Errorf("the proxy was asked %d times for %s, which is not OpenStack", n, host)
	}
}

// forwardProxy passes requests to OpenStack, plain and through a tunnel, and refuses all others.
type forwardProxy struct {
	sync.Mutex
	passed  int
	refused map[string]int
}

const openStackAddress = "198.18.0.1"

func startProxy(t *testing.T) *forwardProxy {
	t.Helper()
	listener := testenv.Value(net.Listen("tcp", proxyAddress))(t)
	p := &forwardProxy{refused: map[string]int{}}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// allow counts a request.
func (p *forwardProxy) allow(host string) bool {
	p.Lock()
	defer p.Unlock()
	if name, _, err := net.SplitHostPort(host); err != nil || name != openStackAddress {
		p.refused[host]++
		return false
	}
	p.passed++
	return true
}

func (p *forwardProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !p.allow(r.Host):
		http.Error(w, "this proxy leads to OpenStack alone", http.StatusForbidden)
	case r.Method == http.MethodConnect:
		tunnel(w, r.Host)
	default:
		target := &url.URL{Scheme: "http", Host: r.Host}
		(&httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Host = r.Host
		}}).ServeHTTP(w, r)
	}
}

// tunnel passes bytes in both directions until one side ends.
func tunnel(w http.ResponseWriter, host string) {
	server, err := net.Dial("tcp", host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { _, _ = io.Copy(server, buffered); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}
