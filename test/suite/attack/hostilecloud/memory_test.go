package hostilecloud

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/endless"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// mostMemory is the limit of the driver's memory peak.
const mostMemory = 128 << 20

// together is how many RPCs are in progress at a time: the sidecar workers of a busy cluster.
const together = 32

// memoryAttacks are the attacks that cost memory, and attacks that the driver's HTTP client ends before they cost memory.
var memoryAttacks = []struct {
	name   string
	attack attack
}{
	{"an honest cloud", nil},
	{"a string without end", attacks["a string without end"]},
	{"empty objects without end", attacks["empty objects without end"]},
	{"nulls without end", attacks["nulls without end"]},
	{"brackets without end", attacks["brackets without end"]},
	{"keys without end", attacks["keys without end"]},
	{"an error without end", attacks["an error without end"]},
	{"a long message of a status that nobody asks for", longMessage(http.StatusNonAuthoritativeInfo)},
	{"a long message of a status that others ask for", longMessage(http.StatusCreated)},
	{"a long message of a redirect to nowhere", longMessage(http.StatusFound)},
	{"bytes that are no UTF-8", after(func(_ *http.Request, honest *answered) *answered {
		honest.body = notUTF8
		return honest
	})},
	{"new pages without end", attacks["new pages without end"]},
	{"pages as large as they may be", after(largePage)},
	{"a gzip bomb", after(func(_ *http.Request, honest *answered) *answered {
		honest.header.Set("Content-Encoding", "gzip")
		honest.body = bomb()
		return honest
	})},
	{"headers without end", after(func(_ *http.Request, honest *answered) *answered {
		for i := range 2000 {
			honest.header.Set(fmt.Sprintf("X-Header-%d", i), strings.Repeat("x", 4000))
		}
		return honest
	})},
	{"a byte a second", attacks["a byte a second"]},
	{"logins as large as one may be", largeLogin(160, 50)},
	{"logins of more values than one may have", largeLogin(2_000, 50)},
	{"volumes as large as an answer may be", largeVolume(230_000)},
	{"volumes as large as an object may be", largeVolume(8_000)},
	{"volumes of one name with much metadata", largeNamed(fmt.Sprintf(`"metadata": {%s}`, listed(8_000, `"%x": "vvvvvvvvvvvvvvv"`)))},
	{"volumes of one name with many attachments", largeNamed(fmt.Sprintf(`"attachments": [%s]`, listed(4_000, `{"device": "/dev/disk/%x"}`)))},
}

// largeLogin answers logins with so many objects in their token, one in the other to that depth, which gophercloud keeps as maps. It refuses a token
// now and then, so that the driver logs in again.
func largeLogin(objects, depth int) attack {
	var asked atomic.Int64
	object := strings.Repeat(`{"":`, depth) + "0" + strings.Repeat("}", depth) + ","
	pad := []byte(`{"token": {"pad": [` + strings.TrimSuffix(strings.Repeat(object, objects), ",") + `], `)
	return func(r *http.Request, honest *answered) *answered {
		switch {
		case isLogin(r):
			if _, token, found := bytes.Cut(honest.body, []byte(`"token":`)); found {
				honest.body = append(slices.Clone(pad), bytes.TrimLeft(token, " ")[1:]...)
			}
		case asked.Add(1)%10 == 5:
			honest.status, honest.body = http.StatusUnauthorized, []byte(`{}`)
		}
		return honest
	}
}

// notUTF8 is a list whose one name json would make three times as long.
var notUTF8 = []byte(`{"volumes": [{"name": "` + strings.Repeat("\xff", 8<<20-100) + `"}]}`)

// longMessage gives each answer a status, and a message that looks like every form of a credential.
func longMessage(status int) attack {
	words := "@ _proxy gaaaa eyj sha256~ gl gh hv xox akia bearer ig= PRIVATE KEY "
	text := []byte(`{"x": {"message": "` + strings.Repeat(words, (8<<20)/len(words)-1) + `"}}`)
	return after(func(_ *http.Request, honest *answered) *answered {
		honest.status, honest.body = status, text
		return honest
	})
}

// listed is the members of a large JSON array or object.
func listed(n int, member string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(member, i)
	}
	return strings.Join(members, ",")
}

// largeNamed answers a search by name with as many volumes as the driver accepts, which are never ready. A create keeps them while it waits.
func largeNamed(member string) attack {
	return after(func(r *http.Request, honest *answered) *answered {
		var page bytes.Buffer
		if keys, is := collectionOf(r); is {
			name := r.URL.Query().Get("name")
			fmt.Fprintf(&page, `{%q: [`, keys[0])
			for i := 0; i < 16 && name != "" && keys[0] == "volumes"; i++ {
				fmt.Fprintf(&page, `%.*s{"id": %q, "name": %q, "status": "creating", "size": 1, %s}`, min(i, 1), ",", freshID(), name, member)
			}
			page.WriteString(`]}`)
		} else if dir, id := path.Split(r.URL.Path); r.Method == http.MethodGet && path.Base(dir) == "volumes" {
			fmt.Fprintf(&page, `{"volume": {"id": %q, "status": "creating", "size": 1}}`, id)
		} else {
			return honest
		}
		honest.status, honest.body = http.StatusOK, page.Bytes()
		return honest
	})
}

// largePage is a list of volumes of the requested name, with the most metadata. Its eight megabytes are just below the limit of one answer.
func largePage(r *http.Request, honest *answered) *answered {
	keys, is := collectionOf(r)
	if !is {
		return honest
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, `{%q: [`, keys[0])
	for i := 0; page.Len() < 8<<20-100<<10; i++ {
		if i > 0 {
			page.WriteByte(',')
		}
		fmt.Fprintf(&page, `{"id": %q, "name": %q, "status": "available", "size": 1, "metadata": {"x": ""`, freshID(), r.URL.Query().Get("name"))
		for n := range 90 {
			fmt.Fprintf(&page, `,"key-%d": %q`, n, strings.Repeat("v", 1000))
		}
		page.WriteString(`}}`)
	}
	fmt.Fprintf(&page, `], %q: [{"rel": "next"}]}`, keys[1])
	honest.status, honest.body = http.StatusOK, page.Bytes()
	return honest
}

// largeVolume answers with volumes that are never ready and have many metadata entries. RPCs keep them while they wait.
func largeVolume(entries int) attack {
	var metadata bytes.Buffer
	for n := range entries {
		fmt.Fprintf(&metadata, `,"%x": ""`, n)
	}
	return after(func(r *http.Request, honest *answered) *answered {
		if keys, is := collectionOf(r); is {
			honest.status, honest.body = http.StatusOK, fmt.Appendf(nil, `{%q: []}`, keys[0])
		} else if dir, id := path.Split(r.URL.Path); r.Method == http.MethodGet && path.Base(dir) == "volumes" {
			honest.status, honest.body = http.StatusOK, fmt.Appendf(nil, `{"volume": {"id": %q, "status": "creating", "size": 1, "metadata": {"x": ""%s}}}`, id, &metadata)
		}
		return honest
	})
}

// bomb is a volume whose description has 200 MiB, compressed.
var bomb = sync.OnceValue(func() []byte { return endless.Bomb(`{"volume": {"description": "`, 'x', 200) })

// ServeHTTP serves the hostile cloud over a real network.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := h.answer(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	resp := a.response(r)
	for key, values := range resp.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(w).Flush()
	_, _ = io.Copy(w, resp.Body)
}

// process is a driver in its own process.
type process struct {
	*controller
	cmd *exec.Cmd
}

func startProcess(t *testing.T, h *hostile, url string) *process {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "cinder-csi-driver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/cinder-csi/cinder-csi/cmd/cinder-csi-driver")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conf, socket := filepath.Join(dir, "cloud.conf"), filepath.Join(dir, "csi.sock")
	testfile.Write(t, conf, h.sim.CloudConf(url), 0o600)
	p := &process{controller: &controller{log: &testenv.Log{}}}
	p.cmd = exec.CommandContext(t.Context(), program, "--endpoint=unix://"+socket, "--cloud-config="+conf, "--cluster=test", "--provide-node-service=false", "--with-capacity", "--v=4")
	p.cmd.Env = append(os.Environ(), "GOGC=100")                   // make test has another, which is none of the driver's
	p.cmd.Stderr, p.cmd.Env = p.log, append(os.Environ(), "GOGC=") // make sets it for the tests
	testenv.Must(t, p.cmd.Start())
	conn := testenv.Value(grpc.NewClient("passthrough:///csi", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		})))(t)
	p.ControllerClient = csi.NewControllerClient(conn)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// peak is the most memory that the process has had at a time (proc(5), VmHWM), in bytes.
func (p *process) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the driver has ended: %v\n%.3000s", err, p.log)
	}
	kb := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if kb == nil {
		t.Fatalf("no VmHWM in\n%s", text)
	}
	n := testenv.Value(strconv.Atoi(string(kb[1])))(t)
	return n << 10
}

// TestThePeakOfTheDriversMemoryAgainstAHostileCloud runs all RPCs and more creates at once against each attack, each for a second and a half.
// On a busy machine an attack goes on until the cloud has got as many requests as there are calls.
func TestThePeakOfTheDriversMemoryAgainstAHostileCloud(t *testing.T) {
	testenv.NeedFull(t, "builds the driver, and attacks it for half a minute")
	h := newHostile()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close) // after the driver's process has ended
	p := startProcess(t, h, server.URL)
	ready, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err := p.ControllerGetCapabilities(ready, &csi.ControllerGetCapabilitiesRequest{}, grpc.WaitForReady(true)); err == nil {
			break
		} else if ready.Err() != nil {
			t.Fatalf("%v\n%.3000s", err, p.log)
		}
	}
	o := testenv.Value(p.prepare(ready))(t)
	for _, m := range memoryAttacks {
		h.arm(m.attack)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		go func(before int) {
			enough := before + together
			if strings.HasPrefix(m.name, "volumes") { // each RPC reads its volume, and waits
				enough += 2 * together
			}
			for again := time.Tick(1500 * time.Millisecond); ctx.Err() == nil; {
				<-again
				if h.requests() >= enough {
					cancel()
				}
			}
		}(h.requests())
		var all sync.WaitGroup
		for n := range together {
			all.Go(func() {
				var err error
				if n < len(calls)-2 && m.attack != nil { // the calls that delete the objects come last
					_, err = calls[n].send(ctx, p, o)
				} else {
					_, err = p.CreateVolume(ctx, csitest.Claim(fmt.Sprint("pvc-", m.name, n)))
				}
				if err != nil {
					checkText(t, m.name, status.Convert(err).Message(), longestError)
				}
			})
		}
		all.Wait()
		cancel()
		t.Logf("%-30s peak so far %4d MiB, %5d requests", m.name, p.peak(t)>>20, h.requests())
	}
	peak := p.peak(t)
	fmt.Printf("measured: peak memory of the driver against the hostile cloud: %d MiB (bound %d MiB)\n", peak>>20, mostMemory>>20)
	if peak > mostMemory {
		t.Errorf("the driver had %d MiB", peak>>20)
	}
	checkText(t, "the log", p.log.String(), longestLine)
}
