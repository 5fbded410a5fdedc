// Package kube asks the Kubernetes API the one thing that the driver wants to know of it: what is noted on a claim. It watches
// nothing and keeps nothing; the standard library is enough for that.
package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options say where the API is.
type Options struct {
	// Server is the API's URL; empty is the cluster's that the process runs in.
	Server string
	// Dir holds the token and ca.crt of the service account; empty is where kubelet mounts them.
	Dir string
	// Env is the process's environment.
	Env func(string) string
	// Transport sends the requests; one that trusts the service account's ca.crt when nil.
	Transport http.RoundTripper
}

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// API is the Kubernetes API. Its methods are safe to call from many goroutines.
type API struct {
	server, token string // the URL, and the token's file
	client        *http.Client
	named         bool // the URL was given, and there need be no service account: a proxy may stand before the API
}

// New gives the API. Nothing is asked yet; an error says that the process does not run in a pod and was told of no API.
func New(o Options) (*API, error) {
	if o.Dir == "" {
		o.Dir = serviceAccount
	}
	a := &API{server: strings.TrimSuffix(o.Server, "/"), token: filepath.Join(o.Dir, "token"), named: o.Server != ""}
	if a.server == "" {
		host, port := o.Env("KUBERNETES_SERVICE_HOST"), o.Env("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("the process runs in no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
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
	// The API does not redirect; net/http would repeat the token on the same host also without encryption.
	last := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.client = &http.Client{Transport: o.Transport, Timeout: timeout, CheckRedirect: last}
	return a, nil
}

// timeout bounds one request: the API answers it from memory.
const timeout = 10 * time.Second

// trusting is a transport that trusts the authorities of a file. The file may be missing where anybody may be asked.
func trusting(path string, optional bool) (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if !optional {
		transport.Proxy = nil // the proxy of the environment is for OpenStack; the pod's own cluster is not behind it
	}
	pem, err := os.ReadFile(path)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
		return transport, nil
	case err != nil:
		return nil, fmt.Errorf("the service account's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// name is what namespaces and claims can be called (Kubernetes, "Object Names and IDs", DNS subdomains).
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// Annotations are those of a PersistentVolumeClaim. NotFound where there is none of that name, PermissionDenied where the service
// account may not get it, Unavailable where the API does not answer.
func (a *API) Annotations(ctx context.Context, namespace, claim string) (map[string]string, error) {
	if !name.MatchString(namespace) || !name.MatchString(claim) {
		return nil, volume.Errorf(volume.InvalidArgument, "%.300q in namespace %.300q cannot be a claim", claim, namespace)
	}
	object := "claim " + namespace + "/" + claim
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+"/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+claim, http.NoBody)
	if err != nil {
		return nil, volume.Errorf(volume.Unknown, "%s: %w", object, err)
	}
	// Its metadata alone (Kubernetes API concepts, "Metadata-only fetches").
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	if err := a.authorize(req); err != nil {
		return nil, volume.Errorf(volume.Unavailable, "%s: the service account's token: %w", object, err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, volume.Errorf(volume.KindOf(ctx.Err()), "%s: %w", object, ctx.Err())
		}
		return nil, volume.Errorf(volume.Unavailable, "%s: the Kubernetes API does not answer: %w", object, err)
	}
	defer resp.Body.Close()
	return read(object, resp)
}

// authorize adds the service account's token, which kubelet replaces every now and then. It never goes over the wire in the clear.
func (a *API) authorize(req *http.Request) error {
	if req.URL.Scheme != "https" {
		return nil
	}
	token, err := os.ReadFile(a.token)
	if a.named && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}

// largest is the longest answer that is read, in bytes: etcd takes no larger object.
const largest = 4 << 20

func read(object string, resp *http.Response) (map[string]string, error) {
	body := io.LimitReader(resp.Body, largest)
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, body) // or the connection is not kept
		kind, advice := meaning(resp.StatusCode), ""
		if kind == volume.PermissionDenied {
			advice = "; the driver's service account needs the right to get persistentvolumeclaims"
		}
		return nil, volume.Errorf(kind, "%s: the Kubernetes API answers HTTP %d%s", object, resp.StatusCode, advice).Op("read annotations")
	}
	var answer struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return nil, volume.Errorf(volume.Unavailable, "%s: the Kubernetes API's answer cannot be read: %w", object, err)
	}
	_, _ = io.Copy(io.Discard, body)
	return answer.Metadata.Annotations, nil
}

// meaning is what an answer that is not 200 means (Kubernetes API conventions, "HTTP Status codes").
func meaning(code int) volume.Kind {
	switch {
	case code == http.StatusNotFound:
		return volume.NotFound
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return volume.PermissionDenied
	}
	return volume.Unavailable
}
