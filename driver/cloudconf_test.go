package driver

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// sources are the files that clusters come with, by who writes them.
var sources = map[string]struct {
	options    config.Settings
	login      cloud.Settings
	complaints []string // parts of warnings; refused under --strict
}{
	"openshift": {
		options: config.Settings{IgnoreZone: true},
		login: cloud.Settings{
			AuthURL: "https://keystone.example.com/v3", ApplicationCredentialID: "cco", ApplicationCredentialSecret: "cco-secret", Region: "regionOne",
			CACertFile: "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
		},
	},
	"openshift-4.17": {
		options: config.Settings{IgnoreZone: true, SearchOrder: []string{"metadataService", "configDrive"}},
		login:   cloud.Settings{AuthURL: "https://keystone.example.com/v3", ApplicationCredentialID: "cco", ApplicationCredentialSecret: "cco-secret", Region: "regionOne"},
	},
	"openshift-4.17-source": { // what the operator used to read, not what it wrote
		login:      cloud.Settings{AuthURL: "https://keystone.example.com/v3", ApplicationCredentialID: "cco", ApplicationCredentialSecret: "cco-secret", Region: "regionOne"},
		complaints: []string{"unknown key secret-name in", "unknown key secret-namespace in", "unknown key kubeconfig-path in"},
	},
	"kubespray": {
		options: config.Settings{IgnoreZone: true, AttachLimit: 25},
		login: cloud.Settings{
			AuthURL: "https://keystone.example.com:5000/v3", Username: "kube", Password: "pa;ss#word", Region: "RegionOne", DomainID: "default",
			ProjectID: "11111111111111111111111111111111", ExpectedProject: "11111111111111111111111111111111", ProjectName: "kube", CACertFile: "/etc/kubernetes/cinder-cacert.pem",
		},
	},
	"magnum": {
		login: cloud.Settings{
			AuthURL: "https://keystone.example.com:5000/v3", UserID: "22222222222222222222222222222222", Password: "trustee-password",
			TrustID: "33333333333333333333333333333333", Region: "RegionOne", CACertFile: "/etc/kubernetes/ca-bundle.crt",
		},
	},
	"gardener": {
		options: config.Settings{AttachLimit: 25},
		login: cloud.Settings{
			AuthURL: "https://keystone.example.com/v3", Username: "shoot-user", ApplicationCredentialID: "66666666666666666666666666666666",
			ApplicationCredentialName: "shoot", ApplicationCredentialSecret: "secret-of-garden", DomainName: "garden", ProjectName: "shoot", Region: "eu-1",
		},
		complaints: []string{"unknown key dhcp-domain in section [Metadata]"},
	},
	"capo": {
		login: cloud.Settings{
			AuthURL: "https://keystone.example.com/v3", Username: "capo", Password: "capo-password", ProjectID: "77777777777777777777777777777777", ExpectedProject: "77777777777777777777777777777777",
			ProjectName: "capo", DomainName: "Default", DomainID: "default", Region: "RegionOne",
		},
	},
}

// cco is the clouds.yaml that OpenShift's cloud credential operator gives to the driver.
const cco = `clouds:
  openstack:
    auth_type: v3applicationcredential
    region_name: regionOne
    auth: {auth_url: 'https://keystone.example.com/v3', application_credential_id: cco, application_credential_secret: cco-secret}
`

// fixture reads a file of testdata/cloudconf; the clouds.yaml that it names is in dir.
func fixture(t *testing.T, dir, name string) []byte {
	t.Helper()
	text := testfile.Text(t, filepath.Join("testdata", "cloudconf", name+".conf"))
	yaml := filepath.Join(dir, "clouds.yaml")
	testfile.Write(t, yaml, cco, 0o600)
	return []byte(strings.ReplaceAll(text, "/etc/kubernetes/secret/clouds.yaml", yaml))
}

func TestConfigurationFilesOfExistingClustersAreRead(t *testing.T) {
	found, err := filepath.Glob("testdata/cloudconf/*.conf")
	if err != nil || len(found) != len(sources) {
		t.Errorf("%d files, %d expectations, %v", len(found), len(sources), err)
	}
	for name, want := range sources {
		t.Run(name, func(t *testing.T) {
			text := fixture(t, t.TempDir(), name)
			file, err := cloudconf.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			options, complaints, err := config.ParseSettings(file)
			if diff := cmp.Diff(want.options, options); err != nil || diff != "" {
				t.Errorf("%v, options -want +got\n%s", err, diff)
			}
			if !slices.EqualFunc(want.complaints, complaints, func(part, whole string) bool { return strings.Contains(whole, part) }) {
				t.Errorf("want %q, got %q", want.complaints, complaints)
			}
			login, err := cloud.FromConf(file, "", noEnv)
			want.login.Name = "of cloud.conf"
			plain := cmp.Transformer("plain", func(s cloud.Secret) string { return string(s) })
			if diff := cmp.Diff(want.login, login, plain); err != nil || diff != "" {
				t.Errorf("%v, login -want +got\n%s", err, diff)
			}
			for _, strict := range []bool{false, true} {
				log := &testenv.Log{}
				ctx, stop := context.WithCancel(t.Context())
				stop()
				err := Run(ctx, configure(t, text, fmt.Sprint("--strict=", strict)), Dependencies{Stderr: log, Listener: memnet.Listen(), Transport: memnet.Transport(http.NotFoundHandler()), Env: noEnv})
				if refused := err != nil; refused != (strict && len(complaints) > 0) {
					t.Errorf("strict %v: %v", strict, err)
				}
				for _, part := range want.complaints {
					if strict && !strings.Contains(err.Error(), part) || !strict && strings.Count(log.String(), part) != 1 {
						t.Errorf("strict %v: want %q told once: %v\n%s", strict, part, err, log)
					}
				}
			}
		})
	}
}

// What upstream's cinder-csi-plugin 1.36 reads of cloud.conf, besides the two keys that it once did.
var upstreamKeys = map[string][]string{
	config.Global: {
		"auth-url", "user-id", "username", "password", "tenant-id", "tenant-name", "tenant-domain-id", "tenant-domain-name", "user-domain-id",
		"user-domain-name", "domain-id", "domain-name", "application-credential-id", "application-credential-name", "application-credential-secret",
		"trust-id", "trustee-id", "trustee-password", "token", "region", "os-endpoint-type", "ca-file", "tls-insecure", "cert-file", "key-file",
		"use-clouds", "clouds-file", "cloud",
	},
	config.BlockStorage: {"node-volume-attach-limit", "rescan-on-resize", "ignore-volume-az", "ignore-volume-microversion", "bs-version", "trust-device-path"},
	config.Metadata:     {"search-order", "request-timeout"},
}

func TestEveryKeyOfUpstreamIsKnown(t *testing.T) {
	values := map[string]string{"search-order": "configDrive", "node-volume-attach-limit": "5"}
	for section, keys := range upstreamKeys {
		for _, key := range keys {
			var file cloudconf.File
			value := values[key]
			if value == "" {
				value = "true"
			}
			file.Set(section, "", key, value)
			if _, complaints, err := config.ParseSettings(&file); err != nil || len(complaints) > 0 {
				t.Errorf("[%s] %s: %v, %v", section, key, complaints, err)
			}
			if !slices.ContainsFunc(config.Options, func(o config.Option) bool { return o.Section == section && o.Key == key && o.Meaning != "" }) {
				t.Errorf("[%s] %s is not described", section, key)
			}
			if section == config.Global && !slices.Contains(cloud.ConfKeys(), key) {
				t.Errorf("[%s] %s is not read", section, key)
			}
		}
	}
}

// [Global] is described in config, for documentation and the generator, and read in cloud.
func TestTheDescribedOptionsOfGlobalAreTheOnesThatAreRead(t *testing.T) {
	var described []string
	for _, o := range config.Options {
		if o.Section == config.Global {
			described = append(described, o.Key)
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(slices.Sorted(slices.Values(cloud.ConfKeys())), described); diff != "" {
		t.Error("-read +described\n", diff)
	}
}
