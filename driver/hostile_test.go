package driver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

func TestReadinessRevealsNoAddressAndNoUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, []byte(strings.Replace(string(sim.CloudConf(cloudURL)), "sim-appcred-secret", "wrong", 1)), memnet.Transport(sim.Handler()))
		client := http.Client{Transport: &http.Transport{DialContext: d.web.DialContext}}
		defer client.CloseIdleConnections()
		for range 3 {
			resp, err := client.Get("http://driver/readyz")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "log") {
				t.Errorf("%d %q", resp.StatusCode, body)
			}
			for _, secret := range []string{"cloud.test", "http", "credential", "user", "project"} {
				if strings.Contains(string(body), secret) {
					t.Errorf("the answer tells of %q: %q", secret, body)
				}
			}
			time.Sleep(time.Minute)
		}
		if log := d.log.String(); strings.Count(log, "not ready: the driver cannot use a cloud") != 1 || !strings.Contains(log, "cloud.test") {
			t.Errorf("want the reason once in\n%s", log)
		}
	})
}

func TestAnUnencryptedConnectionIsLoggedOnceAlsoWithStrict(t *testing.T) {
	for _, args := range [][]string{nil, {"--strict"}} {
		synctest.Test(t, func(t *testing.T) {
			sim := simulated()
			conf := strings.Replace(string(sim.CloudConf(cloudURL)), "[Global]", "[Global]\ntls-insecure=true", 1)
			d := start(t, []byte(conf), memnet.Transport(sim.Handler()), args...)
			for range 3 {
				synctest.Wait()
				d.changed <- struct{}{}
				time.Sleep(time.Second)
			}
			for _, problem := range []string{"are not verified", "is not encrypted"} {
				if log := d.log.String(); strings.Count(log, problem) != 1 {
					t.Errorf("%v: want %q once in\n%s", args, problem, log)
				}
			}
			if n := d.metric(t, "cinder_csi_config_insecure_settings"); n != 2 {
				t.Errorf("%v: %v settings are counted, want 2", args, n)
			}
		})
	}
}

func TestAnIdleHTTPConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		conn, err := d.web.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begin := time.Now()
		written := make(chan struct{})
		go func() { // one byte of a header every nine seconds
			defer close(written)
			for _, b := range []byte("GET /healthz HTTP/1.1\r\nHost: driver\r\nX: " + strings.Repeat("x", 1000)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(9 * time.Second)
			}
		}()
		_, _ = io.Copy(io.Discard, conn)
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the connection was kept for %v", took)
		}
		<-written
	})
}
