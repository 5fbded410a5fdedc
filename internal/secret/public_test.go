package secret

import (
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
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write public.txt")

// ofPeople are variables that no template names: people set them, for programs of Go, OpenStack's clients and OpenTelemetry. None holds a credential, apart
// from proxies, whose URL Text cleans. OTEL_EXPORTER_OTLP_HEADERS is left out: its only use is one.
var ofPeople = []string{
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
	text := testfile.Read(t, "../../generator/verify/sidecars.yaml")
	var sidecars map[string]struct{ Flags []string }
	if err := yaml.Unmarshal(text, &sidecars); err != nil || len(sidecars) == 0 {
		t.Fatal(err, len(sidecars))
	}
	for _, s := range sidecars {
		for _, f := range s.Flags {
			flags[f] = true
		}
	}
	for _, v := range ofPeople {
		vars[v] = true
	}
	templates := os.DirFS("../../charts/cinder-csi/templates")
	err := fs.WalkDir(templates, ".", func(file string, of fs.DirEntry, err error) error {
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
		maps.DeleteFunc(names, func(name string, _ bool) bool { return kind(name, false) == Secret })
	}
	return flags, vars
}

func TestTheNamesThatMayBeShownAreThoseOfTheProject(t *testing.T) {
	flags, vars := known(t)
	want := fmt.Sprintf("[flags]\n%s\n[variables]\n%s\n", strings.Join(slices.Sorted(maps.Keys(flags)), "\n"), strings.Join(slices.Sorted(maps.Keys(vars)), "\n"))
	if *update {
		testfile.Write(t, "public.txt", want, 0o644)
		return
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("go test ./internal/secret -update writes public.txt (-want +got):\n%s", diff)
	}
}
