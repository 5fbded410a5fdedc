package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func serve(t *testing.T, handler http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/prefix")
	if err != nil {
		t.Fatal(err)
	}
	return New("test", base, server.Client())
}

func TestListsAreReadPageByPageWithGETOnly(t *testing.T) {
	var asked testenv.Asked
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery)
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, `{"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}`)
			return
		}
		fmt.Fprint(w, `{"metadata": {}, "items": [{"metadata": {"name": "b"}}]}`)
	})
	got, err := List[struct {
		Metadata struct{ Name string }
	}](t.Context(), c, "/api/v1/nodes")
	if err != nil || len(got) != 2 || got[0].Metadata.Name != "a" || got[1].Metadata.Name != "b" {
		t.Errorf("want a and b, got %v, %v", got, err)
	}
	want := []string{"GET /prefix/api/v1/nodes?limit=500", "GET /prefix/api/v1/nodes?continue=more&limit=500"}
	if diff := cmp.Diff(want, asked.All()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A tenant may create objects that are too large for one answer.
func TestAListOfLargeObjectsIsReadInSmallerPages(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		objects, large int // the first ones are of that many MiB
		want           []string
	}{
		"small":               {600, 0, []string{"0 500", "500 500"}},
		"some large":          {70, 1, []string{"0 500", "0 125", "0 31", "31 31", "62 31"}},
		"each of the largest": {9, 9, []string{"0 500", "0 125", "0 31", "0 7", "7 7"}},
		"beyond etcd":         {9, 10, []string{"0 500", "0 125", "0 31", "0 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked testenv.Asked
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
				from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
				asked.Add(fmt.Sprint(from, " ", limit))
				end, next := from+limit, fmt.Sprint(from+limit)
				if end >= test.objects {
					end, next = test.objects, ""
				}
				fmt.Fprintf(w, `{"metadata": {"continue": %q}, "items": [`, next)
				for i := range end - from {
					fmt.Fprintf(w, `%s{"metadata": {"name": "%d", "annotations": {"a": "`, strings.Repeat(",", min(i, 1)), from+i)
					for range test.large {
						_, _ = io.WriteString(w, text)
					}
					fmt.Fprint(w, `"}}}`)
				}
				fmt.Fprint(w, `]}`)
			})
			got, err := List[struct{ Metadata struct{ Name string } }](t.Context(), c, "/api/v1/pods")
			if large := test.large > 9; errors.Is(err, errTooLarge) != large || !large && len(got) != test.objects {
				t.Errorf("got %d objects, %v", len(got), err)
			}
			for i, o := range got {
				if o.Metadata.Name != strconv.Itoa(i) {
					t.Fatalf("object %d is %s", i, o.Metadata.Name)
				}
			}
			if diff := cmp.Diff(test.want, asked.All()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The login of client-go adds the token to every request, whatever its host.
func TestARedirectOfTheAPIIsNotFollowed(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	var into any
	if err := c.Get(t.Context(), "/api/v1/nodes/a", &into); !errors.Is(err, ErrUnreachable) || asked.Load() != 0 {
		t.Errorf("%d requests went elsewhere: %v", asked.Load(), err)
	}
}

// A proxy that drops the query makes every page the first one. The command must neither read for ever nor report each object twice.
func TestAListWhoseContinueTokenRepeatsIsAnError(t *testing.T) {
	var pages atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if pages.Add(1) > 10 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, `{"metadata": {"continue": "again"}, "items": [{"metadata": {"name": "a"}}]}`)
	})
	_, err := List[struct{}](t.Context(), c, "/api/v1/nodes")
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(fmt.Sprint(err), "does not end") || pages.Load() > 3 {
		t.Errorf("want an error once the token repeats, got %v after %d pages", err, pages.Load())
	}
}

// The API server passes on what a kubelet sends, also if that does not keep the limit.
func TestALogIsReadAtMostAsLongAsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		sent   string
		want   string
		denied bool
	}{
		"shorter":                {http.StatusOK, "abc", "abc", false},
		"as long":                {http.StatusOK, "abcde", "abcde", false},
		"longer":                 {http.StatusOK, strings.Repeat("abcde", 1<<10), "abcde", false},
		"a refusal that is long": {http.StatusForbidden, strings.Repeat("abcde", 1<<10), "", true},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.sent))
		})
		got, err := c.Log(t.Context(), "n", "p", "c", 10, 5, false)
		if errors.Is(err, ErrDenied) != test.denied || !test.denied && (err != nil || string(got) != test.want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestOnlyTheKeysOfASecretAreKept(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data": {"clouds.yaml": "aHVudGVyMg==", "ca.crt": "eA=="}}`)
	})
	keys, err := c.SecretKeys(t.Context(), "ns", "name")
	if diff := cmp.Diff([]string{"ca.crt", "clouds.yaml"}, keys); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnErrorNamesThePathTheClusterAndTheReason(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		want   error
		says   string
	}{
		{http.StatusNotFound, `{"message": "namespaces \"x\" not found"}`, ErrNotFound, `namespaces "x" not found`},
		{http.StatusForbidden, `{"message": "User cannot get"}`, ErrDenied, "User cannot get"},
		{http.StatusUnauthorized, ``, ErrDenied, "HTTP 401"},
		{http.StatusServiceUnavailable, `busy`, ErrUnreachable, "HTTP 503"},
		{http.StatusOK, `<html>`, ErrUnreachable, "not what Kubernetes sends"},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		})
		err := c.Get(t.Context(), "/api/v1/namespaces/x", &struct{}{})
		if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.says) || !strings.Contains(fmt.Sprint(err), "GET /api/v1/namespaces/x of the cluster (context test at http://127.0.0.1") {
			t.Errorf("%d: want %v with %q, got %v", test.status, test.want, test.says, err)
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster: {server: "https://cluster.example:6443"}
users:
- name: u
  user: {token: t}
contexts:
- name: one
  context: {cluster: c, user: u}
- name: two
  context: {cluster: c, user: u}
`

func TestTheKubeconfigIsFoundAsKubectlFindsIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	testfile.Write(t, file, kubeconfig, 0o600)
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	t.Setenv("KUBECONFIG", "")
	for _, test := range []struct {
		name   string
		env    string
		source Source
		want   string
		err    error
	}{
		{"the flag", "", Source{Kubeconfig: file}, "context one at https://cluster.example:6443", nil},
		{"the environment", file, Source{}, "context one at https://cluster.example:6443", nil},
		{"another context", file, Source{Context: "two"}, "context two at https://cluster.example:6443", nil},
		{"a context that does not exist", file, Source{Context: "three"}, `unusable kubeconfig: there is no context "three"; there are one, two`, ErrKubeconfig},
		{"a file that does not exist", "", Source{Kubeconfig: file + "x"}, "unusable kubeconfig: " + file + "x does not exist", ErrKubeconfig},
		{"none", "", Source{}, "", ErrNoKubeconfig},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			c, err := Connect(test.source)
			if !errors.Is(err, test.err) {
				t.Fatalf("want %v, got %v", test.err, err)
			}
			if err == nil && c.Name() != test.want {
				t.Errorf("want %s, got %s", test.want, c.Name())
			}
			if err != nil && test.want != "" && err.Error() != test.want {
				t.Errorf("want %s, got %v", test.want, err)
			}
		})
	}
}

func TestTheSourceChoosesUserAndNamespaceAsKubectlDoes(t *testing.T) {
	var asked testenv.Asked
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(r.Header.Get("Authorization") + " as " + r.Header.Get("Impersonate-User"))
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}], "current-context": "b",
"contexts": [{"name": "b", "context": {"cluster": "c", "user": "one", "namespace": "shop"}}, {"name": "a", "context": {"cluster": "c", "user": "two"}}],
"users": [{"name": "one", "user": {"token": "1"}}, {"name": "two", "user": {"token": "2"}}]}`, server.URL)
	testfile.Write(t, file, config, 0o600)
	for _, test := range []struct {
		source                 Source
		namespace, token, user string
	}{
		{Source{}, "shop", "1", ""},
		{Source{Context: "a"}, "default", "2", ""},
		{Source{User: "two", As: "jane"}, "shop", "2", "jane"},
	} {
		test.source.Kubeconfig = file
		c, err := Connect(test.source)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), "/version", &struct{}{}); err != nil {
			t.Fatal(err)
		}
		all := asked.All()
		got := []string{c.Namespace(), all[len(all)-1]}
		if diff := cmp.Diff([]string{test.namespace, "Bearer " + test.token + " as " + test.user}, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.source, diff)
		}
	}
	if names, err := Contexts(Source{Kubeconfig: file}); err != nil || !cmp.Equal(names, []string{"a", "b"}) {
		t.Errorf("want both contexts, got %q, %v", names, err)
	}
}

// A file may have the private key as text, in base64, or cut into lines.
func TestThePrivateKeyOfAKubeconfigIsAmongTheCredentials(t *testing.T) {
	const key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBYr\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----\n"
	file := filepath.Join(t.TempDir(), "key")
	testfile.Write(t, file, key, 0o600)
	want := []string{key, base64.StdEncoding.EncodeToString([]byte(key)), "MHcCAQEEIBYr", "AwEHoUQDQgAE"}
	for _, c := range []*Cluster{
		{config: &rest.Config{TLSClientConfig: rest.TLSClientConfig{KeyData: []byte(key)}}},
		{config: &rest.Config{TLSClientConfig: rest.TLSClientConfig{KeyFile: file}}},
	} {
		if diff := cmp.Diff(want, c.Credentials()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
