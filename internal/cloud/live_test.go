package cloud

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// read gives settings that a test may change.
type readable struct {
	settings Settings
	err      error
}

func (r *readable) read() (Settings, error) { return r.settings, r.err }

func TestLiveTakesWhatItCanLogInWithAndNothingElse(t *testing.T) {
	t.Parallel()
	answer := http.StatusOK
	k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }}
	from := &readable{settings: k.serve(t)}
	refusing := (&keystone{status: 401}).serve(t)
	live, err := NewLive(from.read, LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	current := func() *Cloud {
		t.Helper()
		c, err := live.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := current()
	reload := func(want bool, problem error) {
		t.Helper()
		changed, err := live.Reload(t.Context())
		if changed != want || !errors.Is(err, problem) {
			t.Errorf("want %v and %v, got %v, %v", want, problem, changed, err)
		}
	}
	reload(false, nil)
	good := from.settings
	from.settings.AuthURL = refusing.AuthURL
	reload(false, ErrUnauthorised)
	from.err = errorf(ErrBadFile, "broken")
	reload(false, ErrBadFile)
	if current() != first || len(k.logins) != 1 {
		t.Errorf("the cloud was replaced by what does not work; %d logins", len(k.logins))
	}
	if _, replaced := first.Successor(t.Context()); replaced {
		t.Error("a broken file gave a successor")
	}
	from.settings, from.err = good, nil
	reload(false, nil)
	from.settings.Password = "s3cret-2"
	second, replaced := first.Successor(t.Context())
	if !replaced || second != current() || second == first || len(k.logins) != 2 {
		t.Errorf("got %p after %p, %v", second, first, replaced)
	}
	if again, replaced := first.Successor(t.Context()); !replaced || again != second || len(k.logins) != 2 {
		t.Error("the successor was made twice")
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Errorf("the old one is no longer of use to those who have it: %v", err)
	}
	answer = http.StatusServiceUnavailable
	if err := first.Ping(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("want unreachable, got %v", err)
	}
}

func TestLiveTakesWhatCanBeReadBeforeItsFirstLogin(t *testing.T) {
	t.Parallel()
	from := &readable{settings: (&keystone{status: 401}).serve(t)}
	live, err := NewLive(from.read, LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Current(t.Context()); !errors.Is(err, ErrUnauthorised) {
		t.Errorf("got %v", err)
	}
	from.settings = (&keystone{catalog: catalog()}).serve(t)
	if changed, err := live.Reload(t.Context()); !changed || err != nil {
		t.Errorf("got %v, %v", changed, err)
	}
	if _, err := live.Current(t.Context()); err != nil { // at once: the pause was the old settings'
		t.Error(err)
	}
	from.err = errorf(ErrBadFile, "broken")
	if _, err := NewLive(from.read, LiveOptions{}); !errors.Is(err, ErrBadFile) {
		t.Errorf("got %v", err)
	}
}

// Keystone locks an account after some refused logins, and with it each cluster and person who uses it.
func TestARefusedLoginIsRepeatedLessAndLess(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(t *testing.T, live *Live, from *readable) error{
		"first login": func(t *testing.T, live *Live, _ *readable) error {
			_, err := live.Current(t.Context())
			return err
		},
		"changed settings": func(t *testing.T, live *Live, from *readable) error {
			from.settings.Password = "s3cret-2"
			_, err := live.Reload(t.Context())
			return err
		},
		"renewed token": func(t *testing.T, live *Live, _ *readable) error {
			c, err := live.Current(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			client, err := c.Client("compute", "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Get(t.Context(), client.ServiceURL("servers"), nil, nil)
			c.Successor(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keystone{catalog: catalog()}
				k.other = func(w http.ResponseWriter, r *http.Request) {
					if k.status != 0 || r.Header.Get("X-Auth-Token") == "token-1" {
						w.WriteHeader(http.StatusUnauthorized)
					}
				}
				from := &readable{settings: secure()}
				live, err := NewLive(from.read, LiveOptions{Options: Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					w := httptest.NewRecorder()
					k.ServeHTTP(w, r)
					return w.Result(), nil
				})}})
				if err != nil {
					t.Fatal(err)
				}
				if name != "first login" {
					if _, err := live.Current(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				k.status = http.StatusUnauthorized
				before := len(k.logins)
				for range 100 {
					for range 5 {
						if err := again(t, live, from); err == nil {
							t.Fatal("Keystone refuses, but there is no error")
						}
					}
					time.Sleep(time.Second)
				}
				if n := len(k.logins) - before; n != 6 { // after 0, 2, 6, 14, 30 and 62 seconds
					t.Errorf("%d logins in 100 s, want 6", n)
				}
				k.status = 0
				time.Sleep(longestPause)
				if err := again(t, live, from); err != nil {
					t.Errorf("a minute after Keystone accepts the login: %v", err)
				}
			})
		})
	}
}

// One caller logs in for all. If it gives up, its deadline says nothing about the cloud: the others neither fail nor wait for the pause
// that follows a failed login.
func TestACallerThatGivesUpWhileItLogsInFailsNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Second
		k := &keystone{catalog: []map[string]any{}}
		slow := roundTrip(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(takes):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			w := httptest.NewRecorder()
			k.ServeHTTP(w, r)
			return w.Result(), nil
		})
		s := Settings{Name: "test", AuthURL: "http://k", UserID: "u", Password: "p", ProjectID: "p"}
		live, err := NewLive(func() (Settings, error) { return s, nil }, LiveOptions{Options: Options{Transport: slow}})
		if err != nil {
			t.Fatal(err)
		}
		const patience = takes / 2
		var callers sync.WaitGroup
		callers.Go(func() {
			impatient, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := live.Current(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the caller that gave up: %v, want its own deadline", err)
			}
		})
		synctest.Wait() // it logs in
		begin := time.Now()
		for _, late := range []time.Duration{0, patience, patience + 10*time.Millisecond} {
			callers.Go(func() {
				time.Sleep(late)
				if _, err := live.Current(t.Context()); err != nil || time.Since(begin) != patience+takes {
					t.Errorf("a caller after %v: %v after %v, want the cloud after one login more, %v", late, err, time.Since(begin), patience+takes)
				}
			})
		}
		callers.Wait()
		if len(k.logins) != 1 {
			t.Errorf("Keystone issued %d tokens, want 1", len(k.logins))
		}
	})
}

// The path stays and the content changes, as in a mounted ConfigMap.
func TestLiveTakesANewAuthority(t *testing.T) {
	t.Parallel()
	one, other := httptest.NewTLSServer(&keystone{catalog: catalog()}), httptest.NewTLSServer(&keystone{catalog: catalog()})
	t.Cleanup(one.Close)
	t.Cleanup(other.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	trust := func(der []byte) {
		t.Helper()
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust(one.Certificate().Raw)
	from := &readable{settings: Settings{Name: "test", AuthURL: one.URL, UserID: "u", Password: "p", ProjectID: "p", CACertFile: ca}}
	live, err := NewLive(from.read, LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := live.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := live.Reload(t.Context()); changed || err != nil {
		t.Errorf("nothing changed, but %v, %v", changed, err)
	}
	trust([]byte("no certificate"))
	if changed, err := live.Reload(t.Context()); changed || !errors.Is(err, ErrBadFile) {
		t.Errorf("a broken CA: %v, %v", changed, err)
	}
	trust(one.Certificate().Raw)
	if err := os.WriteFile(ca, append(must(os.ReadFile(ca)), "# renewed\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := live.Reload(t.Context()); !changed || err != nil {
		t.Errorf("a changed CA: %v, %v", changed, err)
	}
	if now, _ := live.Current(t.Context()); now == first {
		t.Error("the new CA is not in use")
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestConfFilesNamesWhatDecidesALogin(t *testing.T) {
	t.Parallel()
	dir, env := write(t, map[string]string{
		"a.yaml": "clouds: {x: {cacert: /ca-of-yaml, auth: {auth_url: 'http://a/v3', application_credential_id: i, application_credential_secret: s}}}",
	})
	for name, tc := range map[string]struct {
		conf string
		want []string
	}{
		"plain":           {"[Global]\nauth-url=http://k\nuser-id=u\npassword=p\ntenant-id=t\nca-file=/ca\ncert-file=/c\nkey-file=/k\n", []string{"/ca", "/c", "/k"}},
		"clouds.yaml":     {"[Global]\nuse-clouds\nclouds-file=" + dir + "/a.yaml\ncloud=x\n", []string{dir + "/a.yaml", "/ca-of-yaml"}},
		"ca of cloudconf": {"[Global]\nuse-clouds\nclouds-file=" + dir + "/a.yaml\ncloud=x\nca-file=/ca\n", []string{dir + "/a.yaml", "/ca"}},
		"not there yet":   {"[Global]\nuse-clouds\nclouds-file=/later.yaml\n", []string{"/later.yaml"}},
		"no section":      {"", nil},
	} {
		f, err := cloudconf.Parse([]byte(tc.conf))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, ConfFiles(f, "", env)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWatchReportsEveryWayAFileChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mounted, linked := filepath.Join(dir, "mounted", "clouds.yaml"), filepath.Join(dir, "elsewhere", "clouds.yaml")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"mounted", "elsewhere", "mounted/..1"} {
		do(os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	do(os.WriteFile(filepath.Join(dir, "mounted/..1/clouds.yaml"), nil, 0o600))
	do(os.Symlink("..1", filepath.Join(dir, "mounted/..data")))
	do(os.Symlink("..data/clouds.yaml", mounted))
	do(os.Symlink(mounted, linked))
	happened, err := Watch(t.Context(), []string{linked, filepath.Join(dir, "nowhere", "x")})
	if err == nil {
		t.Error("a directory that is not there was not named")
	}
	wait := func(what string) {
		t.Helper()
		select {
		case <-happened:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody was told", what)
		}
		for quiet := false; !quiet; { // one change may be several events
			select {
			case <-happened:
			case <-time.After(50 * time.Millisecond):
				quiet = true
			}
		}
	}
	for i := 2; i < 5; i++ { // what kubelet does, three times: the watch outlives the directories that go
		fresh := filepath.Join(dir, "mounted", "..fresh"+string(rune('0'+i)))
		do(os.Mkdir(fresh, 0o700))
		do(os.WriteFile(filepath.Join(fresh, "clouds.yaml"), nil, 0o600))
		do(os.Symlink(filepath.Base(fresh), filepath.Join(dir, "mounted/..data_tmp")))
		do(os.Rename(filepath.Join(dir, "mounted/..data_tmp"), filepath.Join(dir, "mounted/..data")))
		wait("a projected Secret")
	}
	do(os.WriteFile(linked+".new", []byte("x"), 0o600))
	do(os.Rename(linked+".new", linked))
	wait("an editor's rename")
	do(os.WriteFile(linked, []byte("y"), 0o600))
	wait("a write in place")
}
