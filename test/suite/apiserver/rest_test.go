//go:build apiserver

package apiserver

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// object is one object of the cluster.
type object = map[string]any

// rest sends requests to the API server as its administrator.
type rest struct {
	t    *testing.T
	base *url.URL
	http *http.Client
}

// bearer adds the token of the administrator.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer admin")
	return b.next.RoundTrip(r)
}

func newREST(t *testing.T, s *server) *rest {
	t.Helper()
	var config struct {
		Clusters []struct {
			Cluster struct{ Server string }
		}
	}
	text, err := os.ReadFile(s.Path("kubeconfig"))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	base := testenv.Value(url.Parse(config.Clusters[0].Cluster.Server))(t)
	return &rest{t: t, base: base, http: &http.Client{Transport: bearer{&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}}
}

// cluster reads through a transport, such as one that records.
func (r *rest) cluster(through http.RoundTripper) *cluster.Cluster {
	return cluster.New("test", r.base, &http.Client{Transport: through})
}

func (r *rest) send(method, path string, body object) (object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, r.base.String()+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: HTTP %d %s", method, path, response.StatusCode, answer)
	}
	made := object{}
	return made, json.Unmarshal(answer, &made)
}

// create creates an object and writes its status, as a controller does.
func (r *rest) create(path string, o object) object {
	r.t.Helper()
	made := r.insist(http.MethodPost, path, o)
	if status, has := o["status"]; has {
		r.patch(path+"/"+o["metadata"].(object)["name"].(string)+"/status", object{"status": status})
	}
	return made
}

// insist repeats a request until it succeeds, for a few seconds. Admission reads objects from a cache, which may be behind.
func (r *rest) insist(method, path string, o object) object {
	r.t.Helper()
	var made object
	var err error
	for range 50 {
		if made, err = r.send(method, path, o); err == nil {
			return made
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatal(err)
	return nil
}

func (r *rest) patch(path string, o object) {
	r.t.Helper()
	r.insist(http.MethodPatch, path, o)
}

func (r *rest) delete(path string) {
	r.t.Helper()
	if _, err := r.send(http.MethodDelete, path, object{}); err != nil {
		r.t.Fatal(err)
	}
}
