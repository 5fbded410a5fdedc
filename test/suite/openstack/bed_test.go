//go:build openstack

// Package openstack tests the product against a real OpenStack on this machine. The generator runs as four different users. The driver runs
// with real volumes on real block devices. `make test-openstack` starts the bed and runs the tests.
package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// bed is the directory of the running cloud.
func bed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OPENSTACK_BED")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "openstack-bed")
	}
	if _, err := os.Stat(filepath.Join(dir, "clouds.yaml")); err != nil {
		t.Fatalf("no OpenStack in %s; `make openstack-up` starts one: %v", dir, err)
	}
	return dir
}

// patient is a time limit on this machine: BED_PATIENCE times as long as usual, as for the scripts of the bed.
func patient(limit time.Duration) time.Duration {
	times, err := strconv.Atoi(os.Getenv("BED_PATIENCE"))
	if err != nil || times < 1 {
		times = 1
	}
	return time.Duration(times) * limit
}

// program is the path of one of the built programs.
func program(t *testing.T, name string) string {
	t.Helper()
	path := testenv.Value(filepath.Abs(filepath.Join("..", "..", "..", "bin", name)))(t)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built; run `make build tools`: %v", name, err)
	}
	return path
}

// run runs a program and returns its output and exit code.
func run(t *testing.T, env []string, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String(), messages.String(), code
}

// tree reads every file below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// admin calls Cinder as the administrator of the bed.
type admin struct{ url, token, microversion string }

func newAdmin(t *testing.T, bed string) admin {
	t.Helper()
	return newCaller(t, bed, "lab-admin")
}

// newCaller makes calls as another user of the bed.
func newCaller(t *testing.T, bed, cloud string) admin {
	t.Helper()
	command := func(args ...string) string {
		out, messages, code := run(t, []string{"OS_CLIENT_CONFIG_FILE=" + filepath.Join(bed, "clouds.yaml"), "PATH=/usr/bin:/bin"},
			"/usr/bin/openstack", append([]string{"--os-cloud", cloud}, args...)...)
		if code != 0 {
			t.Fatalf("openstack %v: %s", args, messages)
		}
		return strings.TrimSpace(out)
	}
	var service struct {
		Endpoints []struct{ Interface, URL string }
	}
	testenv.Must(t, json.Unmarshal([]byte(command("catalog", "show", "volumev3", "-f", "json")), &service))
	a := admin{token: command("token", "issue", "-f", "value", "-c", "id")}
	for _, e := range service.Endpoints {
		if e.Interface == "public" {
			a.url = e.URL
		}
	}
	return a
}

func (a admin) call(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	var sent io.Reader
	if body != nil {
		text := testenv.Value(json.Marshal(body))(t)
		sent = bytes.NewReader(text)
	}
	request := testenv.Value(http.NewRequest(method, a.url+path, sent))(t)
	request.Header.Set("X-Auth-Token", a.token)
	request.Header.Set("Content-Type", "application/json")
	if a.microversion != "" {
		request.Header.Set("OpenStack-API-Version", "volume "+a.microversion)
	}
	response := testenv.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	text := testenv.Value(io.ReadAll(response.Body))(t)
	if response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s", method, path, response.Status, text)
	}
	if answer != nil {
		testenv.Must(t, json.Unmarshal(text, answer))
	}
}

// addType adds a public volume type to the cloud until the test ends.
func (a admin) addType(t *testing.T, name string, specs map[string]string) {
	t.Helper()
	var made struct {
		VolumeType struct{ ID string } `json:"volume_type"`
	}
	a.call(t, http.MethodPost, "/types", map[string]any{"volume_type": map[string]any{"name": name, "extra_specs": specs}}, &made)
	t.Cleanup(func() { a.call(t, http.MethodDelete, "/types/"+made.VolumeType.ID, nil, nil) })
}

func describe(files map[string]string) string {
	size := 0
	for _, text := range files {
		size += len(text)
	}
	return fmt.Sprintf("%d files, %d bytes", len(files), size)
}

// wrongSecret writes a clouds.yaml whose entry wrong-secret has lab-demo's user and another password.
func wrongSecret(t *testing.T, bed string) string {
	t.Helper()
	text := testfile.Text(t, filepath.Join(bed, "clouds.yaml"))
	var entry []string
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line == "  lab-demo:":
			entry = []string{"  wrong-secret:"}
		case len(entry) > 0 && strings.HasPrefix(line, "   "):
			if name, _, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "password" {
				line = name + ": not-the-password"
			}
			entry = append(entry, line)
		case len(entry) > 0:
			path := filepath.Join(t.TempDir(), "clouds.yaml")
			testfile.Write(t, path, "clouds:\n"+strings.Join(entry, "\n")+"\n", 0o600)
			return path
		}
	}
	t.Fatal("clouds.yaml has no entry lab-demo")
	return ""
}
