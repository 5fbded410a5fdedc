package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// started runs the command until it has printed its URL.
func started(t *testing.T, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, in, io.Discard)
		in.Close()
	}()
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("no URL: %v, exit code %d", err, <-code)
	}
	return strings.TrimSpace(string(line[:n])), func() int {
		cancel()
		return <-code
	}
}

func TestItServesWritesItsFilesAndStopsOnTheSignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	url, stop := started(t, "--dir", dir, "--latency", "0s")
	response, err := http.Get(url + "/identity/v3")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %s", response.Status)
	}
	for name, want := range map[string]string{"clouds.yaml": "auth_url: " + url + "/identity/v3", "cloud.conf": "auth-url = " + url + "/identity/v3", "url": url} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: want %q in it, got %q, %v", name, want, content, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "clouds.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("clouds.yaml holds secrets: got mode %v, %v", info.Mode(), err)
	}
	if got := stop(); got != exitOK {
		t.Errorf("want exit code %d, got %d", exitOK, got)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("it still answers")
	}
}

func TestDisksCanBeSeenAndGoWithTheProcess(t *testing.T) {
	testenv.NeedRoot(t)
	dir := filepath.Join(t.TempDir(), "disks")
	_, stop := started(t, "--disks", dir, "--disk-delay", "1ms", "--disk-serial", "none")
	if _, err := os.Stat(filepath.Join(dir, "servers", "by-name", "node-az1", "sys", "block")); err != nil {
		t.Error(err)
	}
	if got := stop(); got != exitOK {
		t.Errorf("want exit code %d, got %d", exitOK, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "servers")); !os.IsNotExist(err) {
		t.Errorf("the directories of the servers still exist: %v", err)
	}
}

func TestHelpNamesNoDefaultThatIsNoLatency(t *testing.T) {
	var stderr bytes.Buffer
	run(t.Context(), []string{"--help"}, io.Discard, &stderr)
	if strings.Contains(stderr.String(), "-1ns") || !strings.Contains(stderr.String(), "--cloud") {
		t.Errorf("got %s", stderr.String())
	}
}

func TestAFileShapesTheCloudAndAFlagWinsOverIt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cloud.yaml")
	text := "region: Nord\nunversionedEndpoints: true\nusers: [{name: jane, roles: {demo: [reader]}}]\napplicationCredentials: []\n"
	testfile.Write(t, file, text, 0o600)
	_, stop := started(t, "--cloud", file, "--dir", dir, "--unversioned-endpoints=false")
	defer stop()
	content, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err != nil || !strings.Contains(string(content), "sim-jane:\n    region_name: Nord") {
		t.Errorf("want jane in region Nord, got %q, %v", content, err)
	}
	settings, err := cloud.FromSource(cloud.Source{CloudName: "sim-jane", CloudsFile: filepath.Join(dir, "clouds.yaml"), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Catalog() {
		if e.Type == "compute" && !strings.HasSuffix(e.URL, "/v2.1") {
			t.Errorf("the flag asks for endpoints with a version, got %s", e.URL)
		}
	}
}

func TestExitCodes(t *testing.T) {
	unknownKey := filepath.Join(t.TempDir(), "cloud.yaml")
	testfile.Write(t, unknownKey, "region: x\nzonez: {}\n", 0o600)
	for _, test := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"--help"}, exitOK, "--listen"},
		{[]string{"--nonsense"}, exitUsage, "unknown flag"},
		{[]string{"extra"}, exitUsage, `unexpected argument "extra"`},
		{[]string{"--listen", "256.0.0.1:1"}, exitFailure, "256.0.0.1"},
		{[]string{"--dir", "/dev/null/x"}, exitFailure, "/dev/null"},
		{[]string{"--disks", "/dev"}, exitFailure, "/dev is not empty"},
		{[]string{"--latency", "-1s"}, exitUsage, "want 0s or more"},
		{[]string{"--cloud", "testdata/absent.yaml"}, exitUsage, "no such file"},
		{[]string{"--cloud", unknownKey}, exitUsage, "cloud.yaml:2: unknown key zonez"},
		{[]string{"--disk-serial", "odd"}, exitUsage, "right, wrong or none"},
	} {
		var stderr bytes.Buffer
		if got := run(t.Context(), test.args, io.Discard, &stderr); got != test.want || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%v: want %d and %q, got %d and %q", test.args, test.want, test.says, got, stderr.String())
		}
	}
}
