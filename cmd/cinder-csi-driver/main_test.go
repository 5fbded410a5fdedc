package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/config"
)

func TestExitCodes(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "cloud.conf")
	if err := os.WriteFile(conf, []byte("[Global]\nauth-url=http://127.0.0.1:1/v3\nusername=u\npassword=hunter2\ntenant-name=p\ndomain-name=Default\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
