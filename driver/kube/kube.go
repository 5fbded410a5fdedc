// Package kube does the few things for which the driver needs the Kubernetes API. It reads the annotations of PersistentVolumeClaims, removes
// the start-up taint of nodes, and waits for detaches while a node is being drained. Each is off unless a flag or a command asks for it.
//
// It needs no client library: a typed clientset would add 40 MB to the program.
package kube

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
)

// Options are the address of the API and the identity of the driver.
type Options struct {
	// Server is the URL of the API; empty means that of Kubeconfig, or the cluster of the pod.
	Server string
	// Kubeconfig is a file whose current context says how to log in; empty means the service account of the pod.
	Kubeconfig string
	// Dir holds the token and ca.crt of the service account; empty means the directory where kubelet mounts them.
	Dir string
	// Env is the environment of the process.
	Env func(string) string
	// Version of the driver, for the user agent: the audit log of the cluster then says who sent a request. Empty means unknown.
	Version string
	// Transport sends the requests; nil means one that trusts the ca.crt of the service account.
	Transport http.RoundTripper
}

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// API is the Kubernetes API. Many goroutines may use it.
type API struct {
	server    string
	tokenFile string // empty if there is none
	token     string // of a kubeconfig that has it in itself
	userAgent string
	client    *http.Client
	named     bool // Options has a URL; the service account may be absent, because the URL may be that of a proxy
}

// New returns the API. It sends no request. It fails outside a pod if Options has no URL.
func New(o Options) (*API, error) {
	o.Dir = cmp.Or(o.Dir, serviceAccount)
	a := &API{server: strings.TrimSuffix(o.Server, "/"), tokenFile: filepath.Join(o.Dir, "token"), named: o.Server != "", userAgent: "cinder-csi-driver/" + cmp.Or(o.Version, "unknown")}
	if o.Kubeconfig != "" {
		transport, err := a.use(o.Kubeconfig)
		if err != nil {
			return nil, err
		}
		if o.Transport == nil {
			o.Transport = transport
		}
	}
	if a.server == "" {
		host, port := o.Env("KUBERNETES_SERVICE_HOST"), o.Env("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("no address of the Kubernetes API: the process does not run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set); set --kubeconfig or --master")
		}
		a.server = "https://" + net.JoinHostPort(host, port)
	}
	if u, err := url.Parse(a.server); err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a Kubernetes API", a.server)
	}
	if o.Transport == nil {
		transport, err := trusting(filepath.Join(o.Dir, "ca.crt"), a.named)
		if err != nil {
			return nil, err
		}
		o.Transport = transport
	}
	// The API does not redirect. net/http would follow a redirect to http on the same host, and send the token without encryption.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.client = &http.Client{Transport: o.Transport, Timeout: timeout, CheckRedirect: noRedirect}
	return a, nil
}

// use takes server and login from a kubeconfig, and returns the transport to it.
func (a *API) use(path string) (http.RoundTripper, error) {
	config, err := kubeconfig.Load(path)
	if err != nil {
		return nil, err
	}
	a.server = cmp.Or(a.server, config.Server)
	a.tokenFile, a.token, a.named = config.TokenFile, config.Token, false
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.Proxy = config.TLS(), nil // the environment's proxy is for OpenStack
	return transport, nil
}

// timeout is the longest time of one request; the API answers it from memory.
const timeout = 10 * time.Second

// trusting returns a transport that trusts the certificate authorities of a file. An optional file may be missing.
func trusting(path string, optional bool) (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if !optional {
		transport.Proxy = nil // the environment's proxy is for OpenStack, not for the cluster of the pod
	}
	pem, err := os.ReadFile(path)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
		return transport, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the certificate authority of the service account: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// name is a valid name of a namespace or claim (Kubernetes, "Object Names and IDs", DNS subdomains).
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// Annotations reads the annotations of a PersistentVolumeClaim. It returns InvalidArgument for an invalid name,
// NotFound if the claim does not exist, and PermissionDenied without the right to get it. Otherwise it returns Unavailable.
func (a *API) Annotations(ctx context.Context, namespace, claim string) (map[string]string, error) {
	if !name.MatchString(namespace) || !name.MatchString(claim) {
		return nil, volume.Errorf(volume.InvalidArgument, "claim %.300q in namespace %.300q: these are not valid Kubernetes names", claim, namespace)
	}
	object := "claim " + namespace + "/" + claim
	// Only the metadata (Kubernetes API concepts, "Metadata-only fetches").
	const accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	resp, err := a.do(ctx, a.client, object, http.MethodGet, "/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+claim, accept, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		drain(resp)
		kind, advice := kindOf(resp.StatusCode), ""
		if kind == volume.PermissionDenied {
			advice = "; allow the service account of the driver to get persistentvolumeclaims"
		}
		return nil, volume.Errorf(kind, "%s: the Kubernetes API answers HTTP %d%s", object, resp.StatusCode, advice).Cause(causeOf(kind)).Op("read annotations")
	}
	var answer struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	err = decode(object, resp, maxAnswer, &answer)
	return answer.Metadata.Annotations, err
}

// identify adds the user agent and the token of the service account, but never the token to a request without encryption. It reads the file each
// time, because kubelet replaces the token.
func (a *API) identify(req *http.Request) error {
	req.Header.Set("User-Agent", a.userAgent)
	if req.URL.Scheme != "https" {
		return nil
	}
	if a.tokenFile == "" {
		if a.token != "" {
			req.Header.Set("Authorization", "Bearer "+a.token)
		}
		return nil
	}
	token, err := os.ReadFile(a.tokenFile)
	if a.named && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}

// maxAnswer is the longest answer that the driver reads, in bytes. etcd stores no larger object.
const maxAnswer = 4 << 20

// causeOf is the cause of an answer of the Kubernetes API; empty for the usual one of its kind.
func causeOf(k volume.Kind) cause.ID {
	switch k {
	case volume.PermissionDenied:
		return cause.KubernetesRights
	case volume.Unavailable:
		return cause.KubernetesUnreachable
	case volume.Conflict:
		return cause.VolumeBusy
	}
	return ""
}

// kindOf is the error kind of a status other than 200 (Kubernetes API conventions, "HTTP Status codes").
func kindOf(code int) volume.Kind {
	switch {
	case code == http.StatusNotFound:
		return volume.NotFound
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return volume.PermissionDenied
	}
	return volume.Unavailable
}
