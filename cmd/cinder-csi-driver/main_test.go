package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/charts"
	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestExitCodes(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, conf, "[Global]\nauth-url=http://127.0.0.1:1/v3\nusername=u\npassword=hunter2\ntenant-name=p\ndomain-name=Default\n", 0o600)
	socket := "--endpoint=unix:/" + filepath.Join(t.TempDir(), "csi.sock")
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":             {[]string{"--help"}, 0, "", "--endpoint"},
		"version":          {[]string{"--version"}, 0, "cinder-csi-driver ", ""},
		"access rules":     {[]string{"access-rules"}, 0, `"path": "/v3/*/volumes/*"`, ""},
		"an unknown flag":  {[]string{"--endpont=x"}, 1, "", "endpont"},
		"an argument":      {[]string{"serve"}, 1, "", `"serve"`},
		"not in a pod":     {[]string{"await-detached", "node-1"}, 1, "", "KUBERNETES_SERVICE_HOST"},
		"no node":          {[]string{"await-detached"}, 1, "", "await-detached [NODE]"},
		"the taint, node":  {[]string{socket, "--remove-startup-taint", "--provide-controller-service=false"}, 1, "", "--remove-startup-taint is for the controller service"},
		"no endpoint":      {[]string{"--cloud-config=" + conf}, 1, "", "--endpoint is required"},
		"no cloud.conf":    {[]string{socket, "--cloud-config=" + conf + ".gone"}, 1, "", "cloud.conf.gone"},
		"stopped while up": {[]string{socket, "--cloud-config=" + conf}, 0, "", "serving"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			var stdout, stderr bytes.Buffer
			if code := run(ctx, test.args, &stdout, &stderr); code != test.code {
				t.Errorf("want exit code %d, got %d; %s", test.code, code, &stderr)
			}
			if !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) || strings.Contains(stderr.String(), "hunter2") {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}

func TestTheNodeRoleUsesOneProcessorUnlessItIsTold(t *testing.T) {
	for _, test := range []struct {
		name, env string
		cfg       config.Config
		want      int
	}{
		{"node role", "", config.Config{Node: true}, 1},
		{"controller role", "", config.Config{Controller: true}, 0},
		{"both roles", "", config.Config{Controller: true, Node: true}, 0},
		{"GOMAXPROCS is set", "4", config.Config{Node: true}, 0},
	} {
		if got := processors(test.cfg, test.env); got != test.want {
			t.Errorf("%s: want %d, got %d", test.name, test.want, got)
		}
	}
}

// stopAt is a log that stops its program at a text.
type stopAt struct {
	testenv.Log
	text string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.stop()
	}
	return s.Log.Write(p)
}

// The command of a hook has no variables, so the hook reads its node and driver from the environment.
func TestTheHookTakesNodeAndDriverFromTheEnvironment(t *testing.T) {
	t.Setenv("NODE_NAME", "node-1")
	for name, test := range map[string]struct {
		driver string
		args   []string
		code   int
	}{
		"the driver of the volume":  {"cinder.example.org", nil, 1},
		"another driver":            {"other.example.org", nil, 0},
		"a flag replaces variables": {"cinder.example.org", []string{"--driver-name=other.example.org"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DRIVER_NAME", test.driver)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var asked testenv.Asked
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(r.URL.Path)
				_, _ = io.WriteString(w, map[string]string{
					"/api/v1/nodes/node-1":                      `{"spec": {"taints": [{"key": "node.kubernetes.io/unschedulable"}]}}`,
					"/apis/storage.k8s.io/v1/volumeattachments": `{"items": [{"spec": {"attacher": "cinder.example.org", "nodeName": "node-1", "source": {"persistentVolumeName": "pv-1"}}}]}`,
				}[r.URL.Path])
			}))
			defer api.Close()
			stderr := stopAt{text: "waiting until its volumes are detached", stop: stop}
			if code := run(ctx, append([]string{"await-detached", "--master=" + api.URL}, test.args...), io.Discard, &stderr); code != test.code {
				t.Errorf("want exit code %d, got %d after %v; %s", test.code, code, asked.All(), stderr.String())
			}
		})
	}
}

// kubelet gives the pod its grace period for the hook and the end of the driver together.
func TestTheGracePeriodCoversTheHookAndTheDriver(t *testing.T) {
	text, err := charts.Files.ReadFile("cinder-csi/templates/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	period := regexp.MustCompile(`\n +terminationGracePeriodSeconds: (\d+)\n`).FindSubmatch(text)
	if period == nil {
		t.Fatal("the chart has no grace period")
	}
	grace, err := time.ParseDuration(string(period[1]) + "s")
	if err != nil {
		t.Fatal(err)
	}
	if want := driver.LongestHook + 30*time.Second; grace != want {
		t.Errorf("want %s for a hook of %s, got %s", want, driver.LongestHook, grace)
	}
}
