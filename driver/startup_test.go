package driver

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const cloudURL = "http://cloud.test"

// configure parses flags, with a file that contains conf as cloud.conf.
func configure(t *testing.T, conf []byte, args ...string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, path, conf, 0o600)
	var cfg config.Config
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	cfg.Bind(flags)
	if err := flags.Parse(append([]string{"--endpoint=unix://" + filepath.Join(t.TempDir(), "unused"), "--cloud-config=" + path, "--cluster=test"}, args...)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func noEnv(string) string { return "" }

func TestWhatKeepsTheDriverFromStarting(t *testing.T) {
	good := openstacksim.New(openstacksim.Default()).CloudConf(cloudURL)
	for name, test := range map[string]struct {
		conf    string
		args    []string
		problem string
	}{
		"no such section":             {string(good), []string{"--cloud-name=moon"}, "moon"},
		"not an INI file":             {"[Global\n", nil, "line 1"},
		"no authentication URL":       {"[Global]\nusername=x\n", nil, ""},
		"a bad option":                {string(good) + "[BlockStorage]\nignore-volume-az=maybe\n", nil, "ignore-volume-az"},
		"an unknown key strictly":     {string(good) + "[BlockStorage]\nignore-volume-as=true\n", []string{"--strict"}, "did you mean ignore-volume-az?"},
		"an address that cannot be":   {string(good), []string{"--endpoint=http://x"}, "http"},
		"no flags that make sense":    {string(good), []string{"--default-fs-type=ntfs"}, "ntfs"},
		"root for whoever connects":   {string(good), []string{"--endpoint=TCP://127.0.0.1:0"}, "--provide-node-service=false"},
		"a monitoring address in use": {string(good), []string{"--http-endpoint=256.0.0.1:1", "--endpoint=tcp://127.0.0.1:0", "--provide-node-service=false"}, "--http-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := openstacksim.New(openstacksim.Default())
			log := &testenv.Log{}
			err := Run(t.Context(), configure(t, []byte(test.conf), test.args...), Dependencies{Stderr: log, Transport: memnet.Transport(sim.Handler()), Env: func(string) string { return "" }})
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("want an error with %q, got %v", test.problem, err)
			}
		})
	}
	cfg := configure(t, good)
	cfg.CloudConfig = []string{filepath.Join(t.TempDir(), "gone")}
	if err := Run(t.Context(), cfg, Dependencies{Stderr: &testenv.Log{}}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a missing cloud.conf: %v", err)
	}
}

func TestAnnotationsCannotBeReadOutsideACluster(t *testing.T) {
	sim := openstacksim.New(openstacksim.Default())
	err := Run(t.Context(), configure(t, sim.CloudConf(cloudURL), "--pvc-annotations"), Dependencies{Stderr: &testenv.Log{}, Listener: memnet.Listen(), Transport: memnet.Transport(sim.Handler()), Env: noEnv})
	if err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("got %v", err)
	}
}
