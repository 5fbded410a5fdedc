package hostilecloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// planted is in what no person, file, event or log may have.
const planted = "S3cr3tP4ssw0rd0123456789"

// withLogin is the address of the cloud with a login, as it is in the catalog and in clouds.yaml.
const withLogin = "http://gate" + planted + ":" + planted + "@cloud.test"

func failing(status int, body string, header ...string) *answered {
	a := &answered{status: status, body: []byte(body), header: http.Header{"Content-Type": {"application/json"}}}
	for i := 0; i < len(header); i += 2 {
		a.header.Set(header[i], header[i+1])
	}
	return a
}

// repeats are answers of a service with what a gateway got in the request, or knows itself.
var repeats = map[string]func(r *http.Request) *answered{
	"the token in a message": func(r *http.Request) *answered {
		return failing(500, `{"computeFault": {"message": "upstream refused X-Auth-Token `+r.Header.Get("X-Auth-Token")+` now"}}`, "X-Openstack-Request-Id", "req-1")
	},
	"the token in the texts of an object": func(r *http.Request) *answered {
		id := path.Base(r.URL.Path)
		if len(id) != 36 {
			id = freshID()
		}
		return objectsOf(id, r)
	},
	"the token as an id": func(r *http.Request) *answered { return objectsOf(r.Header.Get("X-Auth-Token"), r) },
	"a login in a message": func(*http.Request) *answered {
		return failing(403, `{"forbidden": {"message": "no route to http://user:`+planted+`@backend/ or proxy user:`+planted+`@proxy:3128"}}`, "X-Openstack-Request-Id", "req-1")
	},
	"a page of a gateway": func(*http.Request) *answered { return failing(502, "<html>"+planted+"</html>") },
	"a bad request":       func(*http.Request) *answered { return failing(400, planted) },
	"a challenge": func(*http.Request) *answered {
		return failing(401, planted, "WWW-Authenticate", `Keystone uri="http://user:`+planted+`@keystone/"`)
	},
	"a redirect with a login": func(*http.Request) *answered {
		return failing(302, planted, "Location", "https://user:"+planted+"@other.test/")
	},
	"a redirect to no URL":   func(*http.Request) *answered { return failing(302, planted, "Location", "https://"+planted+"%zz/") },
	"a redirect to the same": func(*http.Request) *answered { return failing(302, planted, "Location", withLogin+"/elsewhere/") },
	"no JSON":                func(*http.Request) *answered { return failing(200, planted) },
	"a text instead of a list": func(*http.Request) *answered {
		return failing(200, `{"volumes": "`+planted+`", "versions": "`+planted+`"}`)
	},
	"a time that cannot be one": func(*http.Request) *answered { return failing(200, `{"volumes": [{"created_at": "`+planted+`"}]}`) },
	"the id of a request": func(r *http.Request) *answered {
		return failing(404, `{"itemNotFound": {"message": "no"}}`, "X-Openstack-Request-Id", "http://u:"+planted+"@h")
	},
}

// objectsOf is any object and any list, whose texts have the token of the request.
func objectsOf(id string, r *http.Request) *answered {
	token := r.Header.Get("X-Auth-Token")
	object := fmt.Sprintf(`{"id": %q, "name": %q, "size": 1, "metadata": {%[3]q: %[3]q}, "status": %[3]q, "volume_type": %[3]q, "availability_zone": %[3]q, "fail_reason": %[3]q}`,
		id, r.URL.Query().Get("name"), "is "+token)
	var answer []string
	for _, noun := range []string{"volume", "snapshot", "backup", "server"} {
		answer = append(answer, fmt.Sprintf(`%q: %s, %q: [%s]`, noun, object, noun+"s", object))
	}
	return failing(200, "{"+strings.Join(answer, ", ")+"}")
}

// loginRepeats are those of Keystone, which gets the password. A renewal fails as the login does.
var loginRepeats = map[string]func(r *http.Request) *answered{
	"a login that is refused": func(*http.Request) *answered { return failing(401, `{"error": {"message": "refused `+planted+`"}}`) },
	"a login that fails":      func(*http.Request) *answered { return failing(503, `{"error": {"message": "failed `+planted+`"}}`) },
	"a login that is redirected": func(*http.Request) *answered {
		return failing(307, planted, "Location", "https://user:"+planted+"@other.test/")
	},
	"a login without JSON": func(*http.Request) *answered { return failing(201, planted) },
}

// gateway is a cloud whose addresses have a login, and which answers as a row says. It notes the tokens that it sees.
type gateway struct {
	*hostile
	row      func(r *http.Request) *answered // nil: the transport fails
	logins   int                             // that are answered honestly
	tokens   map[string]bool
	repeated int
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		g.mu.Lock()
		g.tokens[token] = true
		g.mu.Unlock()
	}
	if isLogin(r) && r.Method == http.MethodPost && g.logins > 0 {
		g.logins--
		a, err := g.answer(r)
		if err != nil {
			return nil, err
		}
		a.body = bytes.ReplaceAll(a.body, []byte(cloudURL), []byte(withLogin))
		return a.response(r), nil
	}
	g.mu.Lock()
	g.repeated++
	g.mu.Unlock()
	if g.row == nil {
		return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: malformed HTTP response %q", planted)
	}
	if r.Body != nil {
		r.Body.Close()
	}
	return g.row(r).response(r), nil
}

func newGateway(row func(r *http.Request) *answered, logins int) *gateway {
	return &gateway{hostile: newHostile(), row: row, logins: logins, tokens: map[string]bool{}}
}

// check looks for secrets in what is written.
func (g *gateway) check(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range append(slices.Collect(maps.Keys(g.tokens)), planted) {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s has the secret %s: %.300q", what, secret, text[max(0, i-200):])
		}
	}
}

const shopVolume = `{"metadata": {"name": "pvc-u"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "9f445367-ee0c-4f56-93e5-9bdef423e884"}, "claimRef": {"namespace": "shop", "name": "data"}}, "status": {"phase": "Bound"}}`

// shop is a cluster with a claim and a node.
var shop = map[string]string{
	"/api/v1/namespaces/shop/persistentvolumeclaims/data":         `{"metadata": {"name": "data", "uid": "u"}, "spec": {"volumeName": "pvc-u"}, "status": {"phase": "Bound"}}`,
	"/api/v1/persistentvolumes/pvc-u":                             shopVolume,
	"/api/v1/persistentvolumes":                                   `{"items": [` + shopVolume + `]}`,
	"/api/v1/nodes/worker":                                        `{"metadata": {"name": "worker"}, "spec": {"providerID": "openstack:///9f445367-ee0c-4f56-93e5-9bdef423e885"}}`,
	"/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents":     `{"items": [{"metadata": {"name": "c"}, "spec": {"driver": "cinder.csi.openstack.org", "source": {"snapshotHandle": "9f445367-ee0c-4f56-93e5-9bdef423e886"}}}]}`,
	"/apis/storage.k8s.io/v1/csidrivers/cinder.csi.openstack.org": `{"metadata": {"name": "cinder.csi.openstack.org"}}`,
}

func kubernetes(cluster.Source) (*cluster.Cluster, error) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, found := shop[r.URL.Path]
		if !found {
			http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
			return
		}
		fmt.Fprint(w, body)
	})
	return cluster.New("shop", &url.URL{Scheme: "https", Host: "api.test"}, &http.Client{Transport: memnet.Transport(api)}), nil
}

// reading are the commands of both programs that read a cloud.
func reading(dir string) map[string][]string {
	all := map[string][]string{
		"kubectl-cinder volume": {"shop/data"}, "kubectl-cinder list": nil, "kubectl-cinder node": {"worker"}, "kubectl-cinder orphans": {"--cluster-id=blue"},
		"kubectl-cinder lost": nil, "kubectl-cinder recover": {"--cluster-id=blue"}, "kubectl-cinder report": {"--file=" + filepath.Join(dir, "report.tgz")},
		"cinder-csi-generator doctor": {"--verbose"}, "cinder-csi-generator doctor volume": {"shop/data"},
		"cinder-csi-generator import": {"--verbose", "--os-cloud=sim-demo", filepath.Join(dir, "values.yaml")},
	}
	for name, args := range commands(dir) {
		all["cinder-csi-generator "+name] = args[1:]
	}
	return all
}

func TestEveryCommandThatReadsACloudIsInTheTable(t *testing.T) {
	var want []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Flag("os-cloud") != nil {
			want = append(want, strings.ReplaceAll(c.CommandPath(), "kubectl cinder", "kubectl-cinder"))
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(command.Commands())
	walk(cli.Commands())
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(reading("")))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoCommandTellsASecretThatACloudRepeats(t *testing.T) {
	all := func() map[string]*gateway {
		rows := map[string]*gateway{"an answer that is no HTTP": newGateway(nil, 1)}
		for name, row := range repeats {
			rows[name] = newGateway(row, 100)
		}
		for name, row := range loginRepeats {
			rows[name] = newGateway(row, 0)
			rows["a renewal, "+name] = newGateway(func(r *http.Request) *answered {
				if isLogin(r) && r.Method == http.MethodPost {
					return row(r)
				}
				return failing(401, planted)
			}, 1)
		}
		return rows
	}
	for _, row := range slices.Sorted(maps.Keys(all())) {
		t.Run(row, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(reading(""))) {
				synctest.Test(t, func(t *testing.T) { repeatTo(t, name, all()[row]) })
			}
		})
	}
}

// repeatTo runs one command with a cloud that repeats secrets, and looks at all that it writes.
func repeatTo(t *testing.T, name string, g *gateway) {
	dir := t.TempDir()
	clouds := filepath.Join(dir, "clouds.yaml")
	for file, text := range map[string]string{clouds: strings.ReplaceAll(string(g.sim.CloudsYAML(cloudURL)), cloudURL, withLogin), filepath.Join(dir, "values.yaml"): "clusterID: blue\n"} {
		testfile.Write(t, file, text, 0o600)
	}
	connect := func(ctx context.Context, s cloud.Settings, o cloud.Options) (*cloud.Cloud, error) {
		o.Transport = g
		return cloud.Connect(ctx, s, o)
	}
	env := func(name string) string {
		return map[string]string{"OS_CLIENT_CONFIG_FILE": clouds, "OS_CLOUD": "sim-demo"}[name]
	}
	args := strings.Fields(name)
	args = append(args, reading(dir)[name]...)
	var stdout, stderr bytes.Buffer
	if args[0] == "kubectl-cinder" {
		command.Run(t.Context(), command.World{Stdout: &stdout, Stderr: &stderr, Version: "test", Env: env, Connect: connect, Kubernetes: kubernetes, Now: time.Now}, args[1:])
	} else {
		cli.Run(t.Context(), cli.World{
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Version: "test", ReadOnly: true, Env: env, Connect: connect, Kubernetes: kubernetes,
			Open: func(name string) (io.ReadCloser, error) { return os.Open(name) }, Registry: nobody{},
		}, args[1:])
	}
	if g.repeated == 0 || strings.Contains(stderr.String(), "unknown flag") {
		t.Fatalf("%s asked nothing: %s", name, &stderr)
	}
	g.check(t, "stdout of "+name, stdout.String())
	g.check(t, "stderr of "+name, stderr.String())
	for _, pattern := range []string{"inventory.yaml", "bundle/*"} {
		files := testenv.Value(filepath.Glob(filepath.Join(dir, pattern)))(t)
		for _, file := range files {
			content := testfile.Text(t, file)
			g.check(t, file+" of "+name, content)
		}
	}
}

// nobody is a network without a registry.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

func TestNoRPCTellsASecretThatACloudRepeats(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(repeats)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway(repeats[name], 100)
				c := startInMemory(t, g.hostile, "--logging-format=json")
				o := testenv.Value(c.prepare(t.Context()))(t)
				g.arm(func(r *http.Request, honest *answered) *answered {
					if token := r.Header.Get("X-Auth-Token"); token != "" {
						g.mu.Lock()
						g.tokens[token] = true
						g.mu.Unlock()
					}
					if isLogin(r) {
						honest.body = bytes.ReplaceAll(honest.body, []byte(cloudURL), []byte(withLogin))
						return honest
					}
					return g.row(r)
				})
				for i, call := range calls {
					if i%3 != 0 {
						continue // all use the same code for answers
					}
					ctx, cancel := context.WithTimeout(t.Context(), sidecarsDeadline)
					answer, err := call.send(ctx, c, o)
					cancel()
					g.check(t, "the answer of "+call.name, fmt.Sprint(answer, err))
				}
				g.check(t, "the log", c.log.String())
			})
		})
	}
}
