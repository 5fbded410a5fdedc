package cloudparity

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Role is the user that sends a request: the name of a cloud in clouds.yaml without the prefix of the bed.
type Role string

// The roles that both beds have.
const (
	Admin    Role = "demo-admin" // admin on project demo
	Member   Role = "demo"       // member of project demo
	Reader   Role = "reader"     // reader of project demo
	Stranger Role = "other"      // member of project other
	AppCred  Role = "appcred"    // application credential of the member
	Nobody   Role = "nobody"     // sends no token
	Forger   Role = "forger"     // sends a token that no Keystone issued
	Fenced   Role = "fenced"     // application credential that may only list flavors
)

// Bed is the cloud that the cases run on.
type Bed struct {
	Real bool // an OpenStack, not the simulation

	release string // a key of releases; empty means Zed

	prefix   string // of the names of clouds in clouds.yaml: "lab-", "sim-"
	made     string // prefix of all names that this run creates
	count    atomic.Int64
	clouds   map[string]cloudEntry
	client   *http.Client
	sessions map[Role]session
	roots    []root
	faults   faults
	held     []func()          // let a slow operation go on
	sim      *openstacksim.Sim // nil on a real bed
	suite    *testing.T
	running  Case
	lent     map[string]lent
}

// operation is work that the volume backend does for Cinder or Nova after the API has answered.
type operation string

const (
	createOperation         operation = "create_volume"
	deleteOperation         operation = "delete_volume"
	createSnapshotOperation operation = "create_snapshot"
	deleteSnapshotOperation operation = "delete_snapshot"
	extendOperation         operation = "extend_volume"
	attachOperation         operation = "initialize_connection"
	detachOperation         operation = "terminate_connection"
	retypeOperation         operation = "retype" // of the simulation alone
)

// faults make the backend of a bed fail.
type faults interface {
	// inject makes an operation fail, or take seconds, until the caller calls the returned function.
	inject(op operation, slow bool) (repair func() error, err error)
}

// fail makes an operation fail until the case calls repair or ends.
func (b *Bed) fail(t *testing.T, op operation) (repair func()) { return b.inject(t, op, false) }

// slow makes an operation slow enough for the case to observe it. In the simulation, the operation waits until the case waits for its end, or ends.
func (b *Bed) slow(t *testing.T, op operation) {
	goOn := b.inject(t, op, true)
	if !b.Real {
		b.held = append(b.held, goOn)
	}
}

// goOn lets the slow operations of the case go on.
func (b *Bed) goOn() {
	for _, goOn := range b.held {
		goOn()
	}
	b.held = nil
}

func (b *Bed) inject(t *testing.T, op operation, slow bool) (repair func()) {
	t.Helper()
	undo, err := b.faults.inject(op, slow)
	if err != nil {
		t.Fatalf("the bed takes no faults: %v", err)
	}
	repair = sync.OnceFunc(func() {
		if err := undo(); err != nil {
			t.Errorf("a fault stays in the bed: %v", err)
		}
	})
	t.Cleanup(repair)
	return repair
}

// faultFiles are the faults of the real bed: a file per operation, which its volume driver reads.
type faultFiles string

func (dir faultFiles) inject(op operation, slow bool) (func() error, error) {
	words := "fail\n"
	if slow {
		words = "delay=2\n"
	}
	if slow && op == createOperation {
		words = "delay=6\n" // on a busy machine, Nova asks Cinder more than 2 s after it was asked to attach the new volume
	}
	file := filepath.Join(string(dir), string(op))
	return func() error { return os.Remove(file) }, os.WriteFile(file, []byte(words), 0o644)
}

// cloudEntry has the fields of an entry of clouds.yaml that the suite needs.
type cloudEntry struct {
	AuthType string `json:"auth_type"`
	Region   string `json:"region_name"`
	Auth     struct {
		URL               string `json:"auth_url"`
		Username          string `json:"username"`
		Password          string `json:"password"`
		ProjectName       string `json:"project_name"`
		UserDomainName    string `json:"user_domain_name"`
		ProjectDomainName string `json:"project_domain_name"`
		AppCredID         string `json:"application_credential_id"`
		AppCredSecret     string `json:"application_credential_secret"`
	} `json:"auth"`
}

// session is a role that has logged in.
type session struct {
	token     string
	project   string
	user      string
	endpoints map[string]string // by catalog type, without a slash at the end
}

// root is the address of a service without its version, and its name in recordings.
type root struct{ url, name string }

// below is the part of a service endpoint to which a path is appended.
type below int

const (
	endpoint below = iota // all of it
	version               // up to the version, without the project: …/v3
	address               // up to the start of the version
)

// Request is one request to the cloud.
type Request struct {
	Call  cloud.Call
	As    Role
	IDs   []string // in the order of the variables of the call's path
	Query string
	Body  any   // marshalled to JSON; a string is sent unchanged
	Below below // the part of the endpoint before the path
	Of    Role  // the role whose endpoints are used; empty means the role of the request, or the member if that role has no endpoints
}

// openBed reads the clouds.yaml of a bed. It does not log in.
func openBed(cloudsYAML []byte, prefix string) (*Bed, error) {
	var file struct {
		Clouds map[string]cloudEntry `json:"clouds"`
	}
	if err := yaml.Unmarshal(cloudsYAML, &file); err != nil {
		return nil, fmt.Errorf("clouds.yaml: %w", err)
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	return &Bed{
		prefix:   prefix,
		made:     "parity-" + hex.EncodeToString(id) + "-",
		clouds:   file.Clouds,
		client:   &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		sessions: map[Role]session{},
	}, nil
}

// openReal opens the OpenStack whose directory is dir.
func openReal(dir string) (*Bed, error) {
	src, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err != nil {
		return nil, fmt.Errorf("no bed in %s (start one with make openstack-up): %w", dir, err)
	}
	b, err := openBed(src, "lab-")
	if err != nil {
		return nil, err
	}
	b.Real = true
	if b.release, err = cloudOf(dir); err != nil {
		return nil, err
	}
	b.faults = faultFiles(filepath.Join(dir, "state", "faults"))
	return b, nil
}

// name returns a name that no other object in the cloud has. The suite may delete every object with such a name.
func (b *Bed) name() string { return fmt.Sprintf("%s%d", b.made, b.count.Add(1)) }

// session logs a role in, once.
func (b *Bed) session(t *testing.T, as Role) session {
	t.Helper()
	if as == Nobody || as == Forger {
		s := b.session(t, Member)
		s.token = map[Role]string{Forger: "gAAAAABnotAToken"}[as]
		return s
	}
	if s, ok := b.sessions[as]; ok {
		return s
	}
	entry, ok := b.clouds[b.prefix+string(as)]
	if !ok {
		t.Fatalf("the bed's clouds.yaml has no cloud %s%s", b.prefix, as)
	}
	a := b.send(t, http.MethodPost, entry.Auth.URL+"/auth/tokens", "", "", entry.login())
	if a.Status != http.StatusCreated {
		t.Fatalf("login of %s: %d %s", as, a.Status, a.Raw)
	}
	s := session{
		token: a.Header.Get("X-Subject-Token"), project: a.Text("token", "project", "id"), user: a.Text("token", "user", "id"),
		endpoints: map[string]string{},
	}
	for i := range a.List("token", "catalog") {
		for j := range a.List("token", "catalog", i, "endpoints") {
			if a.Text("token", "catalog", i, "endpoints", j, "interface") == "public" {
				url := a.Text("token", "catalog", i, "endpoints", j, "url")
				s.endpoints[a.Text("token", "catalog", i, "type")] = strings.TrimSuffix(url, "/")
			}
		}
	}
	b.sessions[as] = s
	b.learnRoots(s)
	return s
}

// forget logs a role out.
func (b *Bed) forget(as Role) {
	delete(b.sessions, as)
	delete(b.clouds, b.prefix+string(as))
}

// versionPart is the start of the part of an endpoint that has version and project.
var versionPart = regexp.MustCompile(`(/v[0-9][0-9.]*)(/[0-9a-f]{32})?$`)

// learnRoots remembers the addresses of the services, so that recordings do not contain them.
func (b *Bed) learnRoots(s session) {
	if len(b.roots) > 0 {
		return
	}
	for _, service := range []string{"block-storage", "compute", "identity"} {
		if url, ok := s.endpoints[service]; ok {
			b.roots = append(b.roots, root{versionPart.ReplaceAllString(url, ""), "<" + service + ">"})
		}
	}
}

// login is the body of POST /v3/auth/tokens.
func (e cloudEntry) login() map[string]any {
	if e.AuthType == "v3applicationcredential" {
		return map[string]any{"auth": map[string]any{"identity": map[string]any{
			"methods":                []string{"application_credential"},
			"application_credential": map[string]any{"id": e.Auth.AppCredID, "secret": e.Auth.AppCredSecret},
		}}}
	}
	return map[string]any{"auth": map[string]any{
		"identity": map[string]any{
			"methods": []string{"password"},
			"password": map[string]any{"user": map[string]any{
				"name": e.Auth.Username, "password": e.Auth.Password, "domain": map[string]any{"name": e.Auth.UserDomainName},
			}},
		},
		"scope": map[string]any{"project": map[string]any{
			"name": e.Auth.ProjectName, "domain": map[string]any{"name": e.Auth.ProjectDomainName},
		}},
	}}
}

// microversionName is the name of a service in the header OpenStack-API-Version.
var microversionName = map[string]string{"block-storage": "volume", "compute": "compute"}

// variable is a placeholder in a call's path.
var variable = regexp.MustCompile(`\{[^}]*\}`)

// do sends a request to the cloud.
func (b *Bed) do(t *testing.T, r Request) Answer {
	t.Helper()
	s := b.session(t, r.As)
	owner := s
	if r.Of != "" {
		owner = b.session(t, r.Of)
	}
	base, ok := owner.endpoints[r.Call.Service]
	if !ok {
		t.Fatalf("the catalog has no service %s", r.Call.Service)
	}
	switch r.Below {
	case version:
		base = versionPart.ReplaceAllString(base, "$1")
	case address:
		base = versionPart.ReplaceAllString(base, "")
	}
	ids := r.IDs
	path := variable.ReplaceAllStringFunc(r.Call.Path, func(name string) string {
		if len(ids) == 0 {
			t.Fatalf("%s %s: no value for %s", r.Call.Method, r.Call.Path, name)
		}
		id := ids[0]
		ids = ids[1:]
		return id
	})
	url := base + path
	if r.Query != "" {
		url += "?" + r.Query
	}
	microversion := ""
	if r.Call.Microversion != "" {
		microversion = microversionName[r.Call.Service] + " " + r.Call.Microversion
	}
	a := b.send(t, r.Call.Method, url, s.token, microversion, r.Body)
	a.Request = r
	return a
}

// send is one HTTP exchange.
func (b *Bed) send(t *testing.T, method, url, token, microversion string, body any) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute) // a test deletes its objects after the end of its context
	defer cancel()
	return b.exchange(ctx, t, method, url, token, microversion, body)
}

func (b *Bed) exchange(ctx context.Context, t *testing.T, method, url, token, microversion string, body any) Answer {
	t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		data := testenv.Value(json.Marshal(body))(t)
		reader = bytes.NewReader(data)
	}
	req := testenv.Value(http.NewRequestWithContext(ctx, method, url, reader))(t)
	req.Header.Set("Accept", "application/json")
	if reader != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("X-Auth-Token", token)
	}
	if microversion != "" {
		req.Header.Set("OpenStack-API-Version", microversion)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Raw: raw}
	if len(raw) > 0 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&a.Body); err != nil {
			t.Fatalf("%s %s answered %d and no JSON: %v", method, url, resp.StatusCode, err)
		}
	} else if len(raw) > 0 {
		a.Body = string(raw)
	}
	return a
}

// patience is how long an effect may take. A real cloud on a busy machine may need seconds for an operation that is usually immediate.
func (b *Bed) patience() time.Duration {
	if !b.Real {
		return 10 * time.Second
	}
	times, err := strconv.Atoi(os.Getenv("BED_PATIENCE")) // as for the scripts of the bed
	if err != nil || times < 1 {
		times = 1
	}
	return time.Duration(times) * 2 * time.Minute
}

// until calls done repeatedly until it returns true.
func (b *Bed) until(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), b.patience())
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	if !b.Real {
		tick.Reset(2 * time.Millisecond)
	}
	defer tick.Stop()
	for {
		ok, seen := done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not happen in %s; last seen: %s", what, b.patience(), seen)
		case <-tick.C:
		}
	}
}
