//go:build hypershift

package hypershift

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// openstack is the cloud of the hosted cluster. The driver reaches it through proxies with TLS, whose certificate can be replaced.
type openstack struct {
	identity, volume, compute *gophercloud.ServiceClient
	user                      string // id
	urls                      map[string]string
	certificate               atomic.Pointer[tls.Certificate]

	mu    sync.Mutex
	wrote []string // requests of the driver that are no reads: method, path and body

	others []string // IDs of objects without the mark of the hosted cluster
}

// server is a server of the project: a node of the hosted cluster.
type server struct{ ID, Name, Zone string }

// connect connects to the bed of test/bed/openstack or, with HYPERSHIFT_CLOUD=simulated, to a simulated cloud, as a member of a project.
func connect(t *testing.T) *openstack {
	t.Helper()
	name, file := "lab-demo", filepath.Join(os.TempDir(), "openstack-bed", "clouds.yaml")
	if bed := os.Getenv("OPENSTACK_BED"); bed != "" {
		file = filepath.Join(bed, "clouds.yaml")
	}
	if os.Getenv("HYPERSHIFT_CLOUD") == "simulated" {
		name, file = "sim-demo", startSimulated(t)
	}
	settings, err := cloud.FromSource(cloud.Source{CloudName: name, CloudsFile: file, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatalf("%v; `make openstack-up` starts a cloud", err)
	}
	c := testenv.Value(cloud.Connect(t.Context(), settings, cloud.Options{}))(t)
	t.Cleanup(c.Close)
	o := &openstack{urls: map[string]string{}}
	for _, s := range []struct {
		kind, microversion string
		client             **gophercloud.ServiceClient
	}{{"identity", "", &o.identity}, {"block-storage", "3.70", &o.volume}, {"compute", "2.90", &o.compute}} {
		client := testenv.Value(c.Client(s.kind, s.microversion))(t)
		*s.client = client
	}
	result, ok := o.identity.GetAuthResult().(tokens.CreateResult)
	if !ok {
		t.Fatalf("the login gave %T", o.identity.GetAuthResult())
	}
	user := testenv.Value(result.ExtractUser())(t)
	o.user = user.ID
	o.front(t, "auth_url", settings.AuthURL)
	o.front(t, "volume_endpoint_override", o.volume.Endpoint)
	o.front(t, "compute_endpoint_override", o.compute.Endpoint)
	return o
}

// startSimulated serves a simulated cloud, which also has a server of another cluster.
func startSimulated(t *testing.T) string {
	t.Helper()
	config := openstacksim.Default()
	config.Servers = append(config.Servers, openstacksim.Server{
		ID: openstacksim.FixedID("server", foreignServer), Name: foreignServer, Project: "demo", Zone: "az1", CreatedAt: config.Servers[0].CreatedAt,
	})
	sim := openstacksim.New(config)
	listener := testenv.Value(net.Listen("tcp", gateway+":0"))(t)
	s := &http.Server{Handler: sim.Handler()}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	write(t, file, string(sim.CloudsYAML("http://"+listener.Addr().String())))
	return file
}

// front starts a proxy with TLS before a service.
func (o *openstack) front(t *testing.T, key, target string) {
	t.Helper()
	to := testenv.Value(url.Parse(target))(t)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			r.Out.Host = to.Host
			o.record(r.Out)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	listener := testenv.Value(net.Listen("tcp", gateway+":0"))(t)
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.certificate.Load(), nil }}
	// Idle connections end soon, so that a new certificate is used.
	s := &http.Server{Handler: proxy, IdleTimeout: 2 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = s.Serve(tls.NewListener(listener, config)) }()
	t.Cleanup(func() { _ = s.Close() })
	o.urls[key] = "https://" + listener.Addr().String() + to.Path
}

// record keeps what the driver asks the cloud to change. Logins are no change.
func (o *openstack) record(r *http.Request) {
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		return
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote = append(o.wrote, r.Method+" "+r.URL.Path+" "+string(body))
}

// serve makes the proxies use a certificate of an authority.
func (o *openstack) serve(t *testing.T, a *authority) {
	t.Helper()
	certificate, key := a.issue(t, "openstack", "", gateway)
	pair := testenv.Value(tls.X509KeyPair(certificate, key))(t)
	o.certificate.Store(&pair)
}

// credential is an application credential.
type credential struct{ ID, Secret string }

func (o *openstack) newCredential(t *testing.T) credential {
	t.Helper()
	var made struct {
		Credential credential `json:"application_credential"`
	}
	body := map[string]any{"application_credential": map[string]any{"name": "hypershift-" + rand.Text(), "roles": []any{map[string]any{"name": "member"}}}}
	testenv.Value(o.identity.Post(t.Context(), o.identity.ServiceURL("users", o.user, "application_credentials"), body, &made, nil))(t)
	t.Cleanup(func() { o.deleteCredential(made.Credential) })
	return made.Credential
}

func (o *openstack) deleteCredential(c credential) {
	// The cleanup after the test has no context, and a credential that is gone is no failure.
	_, _ = o.identity.Delete(background(), o.identity.ServiceURL("users", o.user, "application_credentials", c.ID), nil)
}

// cloudsYAML is a clouds.yaml with the credential, by way of the proxies.
func (o *openstack) cloudsYAML(c credential) string {
	return fmt.Sprintf("clouds:\n  openstack:\n    region_name: RegionOne\n    auth_type: v3applicationcredential\n    volume_endpoint_override: %s\n    compute_endpoint_override: %s\n"+
		"    auth: {auth_url: %s, application_credential_id: %s, application_credential_secret: %s}\n",
		o.urls["volume_endpoint_override"], o.urls["compute_endpoint_override"], o.urls["auth_url"], c.ID, c.Secret)
}

// servers are those of the project that the bed makes, by name. Each has the metadata role=k8s-node. The first is in the zone of the backup service.
func (o *openstack) servers(t *testing.T) []server {
	t.Helper()
	var list struct {
		Servers []struct {
			ID, Name, Status string
			Zone             string `json:"OS-EXT-AZ:availability_zone"`
			Metadata         map[string]string
		}
	}
	o.get(t, o.compute, "servers/detail", &list)
	var servers []server
	for _, s := range list.Servers {
		if s.Status == "ACTIVE" && s.Metadata["role"] == "k8s-node" {
			servers = append(servers, server{s.ID, s.Name, s.Zone})
		}
	}
	if len(servers) == 0 {
		t.Fatal("the project has no node that is ACTIVE")
	}
	slices.SortFunc(servers, func(a, b server) int { return strings.Compare(a.Name, b.Name) })
	return servers
}

// sweep deletes what a failed run left in the cloud.
func (o *openstack) sweep(t *testing.T) {
	t.Helper()
	for _, id := range o.ofCluster(t, "snapshots") {
		_, _ = o.volume.Delete(t.Context(), o.volume.ServiceURL("snapshots", id), nil)
	}
	eventually(t, 2*time.Minute, "no volume of an earlier run in Cinder", func() error {
		left := o.ofCluster(t, "volumes")
		for _, id := range left {
			for _, s := range o.servers(t) { // each refuses what is not its own
				_, _ = o.compute.Delete(t.Context(), o.compute.ServiceURL("servers", s.ID, "os-volume_attachments", id), nil)
			}
			_, _ = o.volume.Delete(t.Context(), o.volume.ServiceURL("volumes", id), nil)
		}
		if len(left) > 0 {
			return fmt.Errorf("there are %q", left)
		}
		return nil
	})
}

// ofCluster lists the IDs of volumes or snapshots in Cinder that the driver made for this hosted cluster.
func (o *openstack) ofCluster(t *testing.T, kind string) []string {
	t.Helper()
	var list map[string][]struct {
		ID       string
		Metadata map[string]string
	}
	o.get(t, o.volume, kind+"/detail", &list)
	var ids []string
	for _, v := range list[kind] {
		for key, value := range v.Metadata {
			if strings.HasSuffix(key, "/cluster") && value == infraID {
				ids = append(ids, v.ID)
			}
		}
	}
	return ids
}

func (o *openstack) get(t *testing.T, client *gophercloud.ServiceClient, path string, into any) {
	t.Helper()
	testenv.Value(client.Get(t.Context(), client.ServiceURL(strings.Split(path, "/")...), into, nil))(t)
}

// httpOK asks an HTTP endpoint once.
func httpOK(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
