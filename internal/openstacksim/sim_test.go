package openstacksim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// root is where the simulated cloud is served in these tests.
const root = "http://cloud"

// caller talks to a simulated cloud as one user. Paths begin with the service: /volume/volumes becomes /volume/v3/PROJECT/volumes.
type caller struct {
	t         *testing.T
	client    http.Client
	token     string
	ProjectID string
}

// answer is one reply, its body decoded.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

// at walks the body: at("volume", "status").
func (a answer) at(keys ...any) any {
	var v any = a.body
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

// message is the sentence of an error body.
func (a answer) message() string {
	for _, v := range a.body {
		if m, ok := v.(map[string]any); ok {
			s, _ := m["message"].(string)
			return s
		}
	}
	return ""
}

func anonymous(t *testing.T, sim *openstacksim.Sim) *caller {
	return &caller{t: t, client: http.Client{
		Transport:     memnet.Transport(sim.Handler()),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func login(t *testing.T, sim *openstacksim.Sim, user, project string) *caller {
	t.Helper()
	return signIn(t, sim, fmt.Sprintf(`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":%q,"domain":{"id":"default"},"password":%q}}},`+
		`"scope":{"project":{"name":%q,"domain":{"id":"default"}}}}}`, user, "sim-"+user, project))
}

func loginAppCred(t *testing.T, sim *openstacksim.Sim, a openstacksim.ApplicationCredential) *caller {
	t.Helper()
	return signIn(t, sim, fmt.Sprintf(`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":%q,"secret":%q}}}}`, a.ID, a.Secret))
}

func signIn(t *testing.T, sim *openstacksim.Sim, body string) *caller {
	t.Helper()
	c := anonymous(t, sim)
	a := c.do("POST", "/identity/v3/auth/tokens", "", body)
	if a.status != http.StatusCreated {
		t.Fatalf("login: %d %v", a.status, a.body)
	}
	c.token = a.header.Get("X-Subject-Token")
	c.ProjectID, _ = a.at("token", "project", "id").(string)
	return c
}

// do sends a request; version is a microversion ("3.70", "2.90") or empty.
func (c *caller) do(method, path, version, body string) answer {
	c.t.Helper()
	a, err := c.try(method, path, version, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *caller) try(method, path, version, body string) (answer, error) {
	c.t.Helper()
	service, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	header := http.Header{"X-Auth-Token": {c.token}}
	switch {
	case service == "volume" && !strings.HasPrefix(rest, "v3"):
		path = "/volume/v3/" + c.ProjectID + "/" + rest
	case service == "compute" && !strings.HasPrefix(rest, "v2"):
		path = "/compute/v2.1/" + rest
	}
	if version != "" {
		header.Set("OpenStack-API-Version", service+" "+version)
	}
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, root+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	response, err := c.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, header: response.Header}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&a.body); err != nil {
		a.body = map[string]any{"text": map[string]any{"message": string(content)}}
	}
	return a, nil
}

// want fails the test when an answer has another status.
func (c *caller) want(status int, a answer) answer {
	c.t.Helper()
	if a.status != status {
		c.t.Fatalf("want status %d, got %d: %v", status, a.status, a.body)
	}
	return a
}

// create makes a volume from the JSON of its fields and gives its id.
func (c *caller) create(fields string) string {
	c.t.Helper()
	a := c.want(http.StatusAccepted, c.do("POST", "/volume/volumes", "3.70", `{"volume":{`+fields+`}}`))
	return a.at("volume", "id").(string)
}

// state is the status of a volume; "gone" when there is none.
func (c *caller) state(id string) string {
	c.t.Helper()
	a := c.do("GET", "/volume/volumes/"+id, "3.70", "")
	if a.status == http.StatusNotFound {
		return "gone"
	}
	return c.want(http.StatusOK, a).at("volume", "status").(string)
}

func (c *caller) attach(server, volume string) answer {
	c.t.Helper()
	return c.do("POST", "/compute/servers/"+server+"/os-volume_attachments", "2.90", `{"volumeAttachment":{"volumeId":"`+volume+`"}}`)
}

func (c *caller) detach(server, volume string) answer {
	c.t.Helper()
	return c.do("DELETE", "/compute/servers/"+server+"/os-volume_attachments/"+volume, "2.90", "")
}

// novaHas are the volumes that Nova lists for a server.
func (c *caller) novaHas(server string) []string {
	c.t.Helper()
	a := c.want(http.StatusOK, c.do("GET", "/compute/servers/"+server+"/os-volume_attachments", "2.93", ""))
	ids := []string{}
	for _, x := range a.at("volumeAttachments").([]any) {
		ids = append(ids, x.(map[string]any)["volumeId"].(string))
	}
	return ids
}

// instant is the default cloud where nothing takes time.
func instant() *openstacksim.Sim {
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(0)
	return sim
}

func serverID(name string) string {
	for _, s := range openstacksim.Default().Servers {
		if s.Name == name {
			return s.ID
		}
	}
	panic("no server " + name)
}

// bubble runs a story in virtual time on the default cloud with the given latencies.
func bubble(t *testing.T, latency map[openstacksim.Operation]time.Duration, story func(t *testing.T, sim *openstacksim.Sim, c *caller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config := openstacksim.Default()
		config.Latency = latency
		sim := openstacksim.New(config)
		story(t, sim, login(t, sim, "demo", "demo"))
	})
}

func TestAVolumeIsCreatingUntilItsTimeHasPassed(t *testing.T) {
	bubble(t, map[openstacksim.Operation]time.Duration{openstacksim.CreateVolume: time.Hour, openstacksim.DeleteVolume: time.Minute}, func(t *testing.T, _ *openstacksim.Sim, c *caller) {
		begin := time.Now()
		id := c.create(`"size":1`)
		if took := time.Since(begin); took != 0 {
			t.Errorf("the answer took %v", took)
		}
		time.Sleep(time.Hour - 1)
		if got := c.state(id); got != "creating" {
			t.Errorf("just before: want creating, got %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := c.state(id); got != "available" {
			t.Errorf("at its moment: want available, got %s", got)
		}
		c.want(http.StatusAccepted, c.do("DELETE", "/volume/volumes/"+id, "", ""))
		if got := c.state(id); got != "deleting" {
			t.Errorf("want deleting, got %s", got)
		}
		time.Sleep(time.Minute)
		if got := c.state(id); got != "gone" {
			t.Errorf("want gone, got %s", got)
		}
	})
}

func TestVirtualTimeWorksOverAServerToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := openstacksim.Default()
		config.Latency = map[openstacksim.Operation]time.Duration{openstacksim.Answer: time.Hour}
		listener := memnet.Listen()
		server := &http.Server{Handler: openstacksim.New(config).Handler()}
		stopped := make(chan error, 1)
		go func() { stopped <- server.Serve(listener) }()
		transport := &http.Transport{DialContext: listener.DialContext}
		begin := time.Now()
		response, err := (&http.Client{Transport: transport}).Get(root + "/identity/v3")
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if took := time.Since(begin); took != time.Hour || response.StatusCode != http.StatusOK {
			t.Errorf("got %d after %v", response.StatusCode, took)
		}
		transport.CloseIdleConnections()
		server.Close()
		<-stopped
	})
}

func TestTheSameSeedGivesTheSameIDs(t *testing.T) {
	story := func(seed uint64) string {
		config := openstacksim.Default()
		config.Seed, config.Latency = seed, nil
		sim := openstacksim.New(config)
		return login(t, sim, "demo", "demo").create(`"size":1`)
	}
	if a, b := story(7), story(7); a != b {
		t.Errorf("the same seed gave %s and %s", a, b)
	}
	if a, b := story(7), story(8); a == b {
		t.Errorf("two seeds gave %s", a)
	}
	if diff := cmp.Diff(openstacksim.Default().Servers, openstacksim.Default().Servers); diff != "" {
		t.Errorf("two default clouds differ:\n%s", diff)
	}
}

func TestTheRecorderSeesRequestsButNoPasswords(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	c.create(`"size":1,"name":"x"`)
	requests := sim.Requests()
	if len(requests) != 2 || sim.RequestCount() != 2 {
		t.Fatalf("want two requests, got %v", requests)
	}
	got := requests[1]
	if got.Method != "POST" || !strings.HasSuffix(got.Path, "/volumes") || got.Status != http.StatusAccepted || got.Microversion != "volume 3.70" || !strings.Contains(got.Body, `"x"`) {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(fmt.Sprint(requests), "sim-demo\"") || requests[0].Body != "" {
		t.Errorf("the login's body was kept: %+v", requests[0])
	}
	sim.ResetRequests()
	if sim.RequestCount() != 0 || len(sim.Requests()) != 0 {
		t.Error("the requests were not forgotten")
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(time.Microsecond)
	c := login(t, sim, "demo", "demo")
	done := make(chan error)
	const callers = 20
	for i := range callers {
		go func() {
			a, err := c.try("POST", "/volume/volumes", "3.70", fmt.Sprintf(`{"volume":{"size":1,"name":"v%d","metadata":{"i":"%d"}}}`, i, i))
			if err == nil && a.status != http.StatusAccepted {
				err = fmt.Errorf("got %d: %v", a.status, a.body)
			}
			if err == nil {
				_, err = c.try("GET", "/volume/volumes/detail", "3.70", "")
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	a := c.do("GET", "/volume/volumes?with_count=true&limit=1", "3.70", "")
	if got := a.at("count"); got != json.Number("20") {
		t.Errorf("want 20 volumes, got %v", got)
	}
}
