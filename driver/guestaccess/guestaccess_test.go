package guestaccess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// keeper is a keeper whose requests go to a function.
func keeper(t *testing.T, log *bytes.Buffer, request func(kubeconfig.Config) (token, error)) (*Keeper, Options) {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		Kubeconfig: filepath.Join(dir, "admin"), Namespace: "cinder-csi", ServiceAccount: "controller", Dir: dir, Lifetime: time.Hour,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	testfile.Write(t, o.Kubeconfig, admin("https://guest:6443", "token: a-secret"), 0o600)
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	k.request = func(_ context.Context, c kubeconfig.Config, _ Options) (token, error) { return request(c) }
	return k, o
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	return testfile.Text(t, filepath.Join(dir, name))
}

func TestATokenIsRenewedAfterFourFifthsOfItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		k, o := keeper(t, &bytes.Buffer{}, func(kubeconfig.Config) (token, error) {
			at = append(at, time.Since(begin))
			return token{text: "token " + time.Since(begin).String(), expires: time.Now().Add(time.Hour)}, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Minute)
		defer stop()
		if k.Valid() {
			t.Error("valid before anything is written")
		}
		if err := k.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(at) != 3 || at[1] != 48*time.Minute || at[2] != 96*time.Minute {
			t.Errorf("want requests at 0, 48 and 96 minutes, got %v", at)
		}
		if got := content(t, o.Dir, "token"); got != "token 1h36m0s" || !k.Valid() {
			t.Errorf("want the last token, got %q", got)
		}
		if config := content(t, o.Dir, "kubeconfig"); strings.Contains(config, "a-secret") || !strings.Contains(config, filepath.Join(o.Dir, "token")) {
			t.Errorf("want a kubeconfig that names the token's file and has no secret, got:\n%s", config)
		}
	})
}

func TestAReplacedKubeconfigIsUsedWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers []string
		k, o := keeper(t, &bytes.Buffer{}, func(c kubeconfig.Config) (token, error) {
			servers = append(servers, c.Server)
			return token{text: "t", expires: time.Now().Add(time.Hour)}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		time.Sleep(time.Minute)
		testfile.Write(t, o.Kubeconfig, admin("https://other:6443", "token: b-secret"), 0o600)
		time.Sleep(look)
		synctest.Wait()
		stop()
		synctest.Wait()
		if len(servers) != 2 || servers[1] != "https://other:6443" || !strings.Contains(content(t, o.Dir, "kubeconfig"), "https://other:6443") {
			t.Errorf("want a request to the other server, got %q", servers)
		}
	})
}

func TestAFailedRequestIsTriedAgainAndTheTokenStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := 0
		k, o := keeper(t, &log, func(kubeconfig.Config) (token, error) {
			if n++; n > 1 {
				return token{}, errors.New("refused")
			}
			return token{text: "first", expires: time.Now().Add(time.Hour)}, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), 70*time.Minute)
		defer stop()
		if err := k.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n < 30 || n > 60 {
			t.Errorf("want about two attempts a minute for 22 minutes, got %d", n)
		}
		if content(t, o.Dir, "token") != "first" || k.Valid() {
			t.Errorf("want the first token, expired; valid: %t", k.Valid())
		}
		if text := log.String(); !strings.Contains(text, "cinder-csi/controller") || strings.Contains(text, "a-secret") {
			t.Errorf("want errors that name the account and no secret, got:\n%s", text)
		}
	})
}

func TestTheAPIIsAskedForATokenOfTheAccount(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		err    string
	}{
		"created":         {http.StatusCreated, `{"status": {"token": "t", "expirationTimestamp": "2030-01-02T03:04:05Z"}}`, ""},
		"no account":      {http.StatusNotFound, `{}`, "has no service account cinder-csi/controller"},
		"refused":         {http.StatusForbidden, `{}`, "must be an administrator's"},
		"broken":          {http.StatusInternalServerError, `{}`, "HTTP 500"},
		"redirect":        {http.StatusFound, `{}`, "HTTP 302"},
		"without a token": {http.StatusCreated, `{}`, "without a token"},
		"no JSON":         {http.StatusCreated, `x`, "without a token"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked testenv.Asked
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request tokenRequest
				_ = json.NewDecoder(r.Body).Decode(&request)
				asked.Add(fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", request.Spec.ExpirationSeconds))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			k, err := kubeconfig.Parse([]byte(admin(s.URL, "token: a-secret")))
			if err != nil {
				t.Fatal(err)
			}
			k.CA = certificateOf(s)
			answer, err := requestToken(t.Context(), k, Options{Namespace: "cinder-csi", ServiceAccount: "controller", Lifetime: time.Hour})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("want error %q, got %v", c.err, err)
			}
			if c.err == "" && (answer.text != "t" || answer.expires.Year() != 2030) {
				t.Errorf("got %+v", answer)
			}
			want := []string{"POST /api/v1/namespaces/cinder-csi/serviceaccounts/controller/token Bearer a-secret 3600"}
			if diff := cmp.Diff(want, asked.All()); diff != "" {
				t.Errorf("the requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := Options{Kubeconfig: "k", Namespace: "n", ServiceAccount: "s", Dir: "/d", Lifetime: time.Hour}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"--kubeconfig":      func(o *Options) { o.Kubeconfig = "" },
		"--namespace":       func(o *Options) { o.Namespace = "" },
		"--service-account": func(o *Options) { o.ServiceAccount = "" },
		"--output-dir":      func(o *Options) { o.Dir = "d" },
		"--lifetime":        func(o *Options) { o.Lifetime = time.Minute },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want an error of %s, got %v", want, err)
		}
	}
}
