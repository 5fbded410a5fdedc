package support

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/config"
)

var update = flag.Bool("update", false, "write allowed.txt")

// variables that no template names: people set them, for programs of Go, OpenStack's clients and OpenTelemetry. None holds a credential, apart
// from proxies, whose URL Text cleans. OTEL_EXPORTER_OTLP_HEADERS is left out: its only use is one.
var variables = []string{
	"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "https_proxy", "http_proxy", "no_proxy",
	"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ", "LANG",
	"OS_AUTH_URL", "OS_CACERT", "OS_CLIENT_CONFIG_FILE", "OS_CLOUD", "OS_INTERFACE", "OS_REGION_NAME",
	"OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
	"CLOUD_CONFIG", "CLUSTER_NAME", "CSI_ENDPOINT", "NODE_ID", // of upstream's manifests
}

var (
	flagOfTemplate     = regexp.MustCompile(`--([a-z][a-z0-9-]+)`)
	variableOfTemplate = regexp.MustCompile(`(?m)(?:name:|^ +) ?([A-Z][A-Z0-9_]{2,}):?(?:[ ]|$)|\$\(([A-Z][A-Z0-9_]+)\)`)
)

// known are the flags and the variables of the driver, its sidecars and the chart. Secret names are not among them.
func known(t *testing.T) (flags, vars map[string]bool) {
	t.Helper()
	flags, vars = map[string]bool{}, map[string]bool{}
	ofDriver := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(config.Config).Bind(ofDriver)
	ofDriver.VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	text, err := os.ReadFile("../../../generator/verify/sidecars.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sidecars map[string]struct{ Flags []string }
	if err := yaml.Unmarshal(text, &sidecars); err != nil || len(sidecars) == 0 {
		t.Fatal(err, len(sidecars))
	}
	for _, s := range sidecars {
		for _, f := range s.Flags {
			flags[f] = true
		}
	}
	for _, v := range variables {
		vars[v] = true
	}
	templates := os.DirFS("../../../charts/cinder-csi/templates")
	err = fs.WalkDir(templates, ".", func(file string, of fs.DirEntry, err error) error {
		if err != nil || of.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, file)
		if err != nil {
			return err
		}
		for _, m := range flagOfTemplate.FindAllStringSubmatch(string(text), -1) {
			flags[m[1]] = true
		}
		for _, m := range variableOfTemplate.FindAllStringSubmatch(string(text), -1) {
			vars[m[1]+m[2]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range []map[string]bool{flags, vars} {
		maps.DeleteFunc(names, func(name string, _ bool) bool { return secret(name) })
	}
	return flags, vars
}

func TestTheNamesThatMayBeShownAreThoseOfTheProject(t *testing.T) {
	flags, vars := known(t)
	want := fmt.Sprintf("[flags]\n%s\n[variables]\n%s\n", strings.Join(slices.Sorted(maps.Keys(flags)), "\n"), strings.Join(slices.Sorted(maps.Keys(vars)), "\n"))
	if *update {
		if err := os.WriteFile("allowed.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, allowedNames); diff != "" {
		t.Errorf("go test ./internal/diagnosis/support -update writes allowed.txt (-want +got):\n%s", diff)
	}
}

// Forty forms in which people keep credentials, at each place of an object where somebody else chooses the name.
func TestNoCredentialOfAnyFormLeavesTheCluster(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd"
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + planted))
	forms := []string{
		planted, encoded, "user:" + planted + "@proxy.example.com:3128", "https://user:" + planted + "@proxy.example.com", "x-honeycomb-team=" + planted,
		"password=" + planted, "password: " + planted, "passwd " + planted, "--password " + planted, "--password=" + planted, "pass: " + planted, "pw=" + planted,
		"Bearer " + planted, "Authorization: Basic " + encoded, "Cookie: id=" + planted, "X-Auth-Token: " + planted, "token=" + planted,
		`{"password":"` + planted + `"}`, `{"auths":{"r.example.com":{"auth":"` + encoded + `"}}}`, "[Global]\npassword = " + planted,
		"clouds:\n  a:\n    auth:\n      password: " + planted, "machine x login y password " + planted, "glpat-" + planted + "01234", "ghp_" + planted + "012345678901234567",
		"hvs." + planted + "0123456789", "xoxb-" + planted, "https://x.blob.example.com/?sv=1&sig=" + planted, "https://s3.example.com/x?X-Amz-Signature=" + planted,
		"postgres://user:" + planted + "@db/x", "user=x;pwd=" + planted, "AccountKey=" + planted + "==;", "{{ with secret \"kv/x\" }}" + planted + "{{ end }}",
		"#cloud-config\nchpasswd:\n  list: root:" + planted, "export OS_PASSWORD=" + planted, "echo " + planted + " | login", "sh -c 'login " + planted + "'",
		"-----BEGIN PRIVATE KEY-----\n" + planted + "\n-----END PRIVATE KEY-----", "amqp://guest:" + planted + "@mq:5672/", "redis://:" + planted + "@r:6379", "key=" + planted,
	}
	places := map[string]func(form string) any{
		"a variable": func(f string) any { return fields("env", []any{fields("name", "OTHER", "value", f)}) },
		"headers of a collector": func(f string) any {
			return fields("env", []any{fields("name", "OTEL_EXPORTER_OTLP_HEADERS", "value", f)})
		},
		"an annotation":         func(f string) any { return fields("metadata", fields("annotations", fields("example.com/note", f))) },
		"a text of a ConfigMap": func(f string) any { return fields("metadata", fields("name", "c"), "data", fields("x.ini", f)) },
		"binary data":           func(f string) any { return fields("metadata", fields("name", "c"), "binaryData", fields("x", f)) },
		"an unknown flag":       func(f string) any { return fields("args", []any{"--login=" + f}) },
		"a word of a command":   func(f string) any { return fields("command", []any{"/bin/sh", "-c", f}) },
	}
	if len(forms) < 40 {
		t.Fatal(len(forms), "forms")
	}
	for place, make := range places {
		for _, form := range forms {
			out, err := json.Marshal(NewRedactor().Value(make(form)))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(out), planted) || strings.Contains(string(out), encoded) {
				t.Errorf("%s with %q: %s", place, form, out)
			}
		}
	}
}

// A proxy, and a message of an event, are texts that everybody reads. Only forms that show what they are can be found there.
func TestACredentialIsFoundInATextByItsForm(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd"
	for name, of := range map[string]any{
		"a proxy without a scheme":  fields("env", []any{fields("name", "HTTPS_PROXY", "value", "user:"+planted+"@proxy.example.com:3128")}),
		"a token of GitLab":         fields("message", "use glpat-"+planted+"01234"),
		"a token of GitHub":         fields("message", "use ghp_"+planted+"0123456789012345678901"),
		"a token of Vault":          fields("message", "use hvs."+planted+"0123456789"),
		"the signature of a URL":    fields("message", "https://x.blob.example/?sv=1&sig="+planted),
		"the signature of a bucket": fields("message", "https://s3.example/x?X-Amz-Signature="+planted),
	} {
		out, err := json.Marshal(NewRedactor().Value(of))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), planted) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestWhatTheProjectWritesIsShown(t *testing.T) {
	of := fields(
		"metadata", fields("name", "kept-pod", "annotations", fields("volume.kubernetes.io/selected-node", "node-1", "cinder-csi.io/config-hash", "abc")),
		"env", []any{fields("name", "LOG_LEVEL", "value", "5"), fields("name", "NO_PROXY", "value", "10.0.0.0/8")},
		"args", []any{"--v=5", "--csi-address=/csi/csi.sock", "$(DRIVER_NAME)", "/etc/x"}, "command", []any{"cinder-csi-driver"},
		"data", fields("DRIVER_NAME", "cinder.csi.openstack.org"),
	)
	want, _ := json.Marshal(of)
	got, err := json.Marshal(NewRedactor().Value(of))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// fields makes a map of keys and values in turn.
func fields(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}
