package verify_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

var update = flag.Bool("update", false, "write the pages that this package makes")

// operatorParts is what OpenShift's operator deploys; testdata/openshift-parity.yaml describes its fields.
type operatorParts struct {
	Deviations map[string]string
	Objects    []operatorObject
}

type operatorObject struct {
	Operator, Object, In string
	Sidecar, Proxy       bool // it has the rows of every sidecar, or of every kube-rbac-proxy
	Rows                 []operatorRow
}

type operatorRow struct {
	What, Object, At, Deviation string
	Is                          any
}

// mostDeviations is how many named differences are allowed.
const mostDeviations = 20

// every sidecar and every kube-rbac-proxy of the operator has these.
var (
	sidecarRows = []operatorRow{
		{What: "--csi-address", At: "args", Is: "--csi-address=/csi/csi.sock"},
		{What: "--leader-election", At: "args", Is: "--leader-election"},
		{What: "--leader-election-namespace", At: "args", Is: "--leader-election-namespace=$(LEASE_NAMESPACE)"},
		{What: "--leader-election-lease-duration", At: "args", Is: "--leader-election-lease-duration=$(LEASE_DURATION)"},
		{What: "--leader-election-renew-deadline", At: "args", Is: "--leader-election-renew-deadline=$(LEASE_RENEW_DEADLINE)"},
		{What: "--leader-election-retry-period", At: "args", Is: "--leader-election-retry-period=$(LEASE_RETRY_PERIOD)"},
		{What: "metrics on localhost", Deviation: "metricsAddress"},
		{What: "--v", At: "args", Is: "--v=$(LOG_LEVEL)"},
		{What: "mount of the socket", At: "volumeMounts[socket].mountPath", Is: "/csi"},
		{What: "request cpu", At: "resources.requests.cpu", Is: "10m"},
		{What: "request memory", At: "resources.requests.memory", Is: "50Mi"},
		{What: "readOnlyRootFilesystem", At: "securityContext.readOnlyRootFilesystem", Is: true},
		{What: "terminationMessagePolicy", At: "terminationMessagePolicy", Is: "FallbackToLogsOnError"},
	}
	proxyRows = []operatorRow{
		{What: "--tls-cert-file", At: "args", Is: "--tls-cert-file=/etc/tls/private/tls.crt"},
		{What: "--tls-private-key-file", At: "args", Is: "--tls-private-key-file=/etc/tls/private/tls.key"},
		{What: "--tls-cipher-suites", At: "args", Is: "--tls-cipher-suites=$(TLS_CIPHER_SUITES)"},
		{What: "--tls-min-version", At: "args", Is: "--tls-min-version=$(TLS_MIN_VERSION)"},
		{What: "--secure-listen-address, --upstream: port numbers", Deviation: "ports"},
		{What: "mount of the certificate", At: "volumeMounts[metrics-tls].mountPath", Is: "/etc/tls/private"},
		{What: "request memory", At: "resources.requests.memory", Is: "20Mi"},
		{What: "readOnlyRootFilesystem", At: "securityContext.readOnlyRootFilesystem", Is: true},
		{What: "terminationMessagePolicy", At: "terminationMessagePolicy", Is: "FallbackToLogsOnError"},
	}
)

func readParts(t *testing.T) operatorParts {
	t.Helper()
	text, err := os.ReadFile("testdata/openshift-parity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var parts operatorParts
	if err := yaml.UnmarshalStrict(text, &parts); err != nil {
		t.Fatal(err)
	}
	for i, o := range parts.Objects {
		if o.Sidecar {
			parts.Objects[i].Rows = slices.Concat(sidecarRows, o.Rows)
		}
		if o.Proxy {
			parts.Objects[i].Rows = slices.Concat(proxyRows, o.Rows)
		}
	}
	return parts
}

// adopting is a configuration that switches on what the operator deploys.
func adopting() v1alpha1.Spec {
	return v1alpha1.Spec{
		ClusterID:     "prod-x7k2p",
		OpenShift:     v1alpha1.OpenShift{Coexistence: v1alpha1.Adopt, ControlPlaneTopology: v1alpha1.HighlyAvailable, ClusterNetworks: []string{"10.128.0.0/14", "172.30.0.0/16"}},
		Monitoring:    v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
		NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true},
		TrustedCA:     true,
		Planes:        v1alpha1.Planes{Controller: v1alpha1.Plane{Proxy: v1alpha1.Proxy{HTTPS: "http://proxy.example:3128", NoProxy: "example.org"}}},
	}
}

// TestABundleHasWhatOpenShiftsOperatorDeploys compares both forms of a bundle with the operator's inventory.
func TestABundleHasWhatOpenShiftsOperatorDeploys(t *testing.T) {
	parts := readParts(t)
	used := map[string]bool{}
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		objects := map[string]verify.Object{}
		for _, o := range build(t, decide(t, adopting(), clouds["topology on"], v1alpha1.Standalone), format) {
			objects[o.Kind()+"/"+o.Name()] = o
		}
		if format == v1alpha1.Helm { // Namespaces are beside the chart
			for _, o := range build(t, decide(t, adopting(), clouds["topology on"], v1alpha1.Standalone), v1alpha1.Kustomize) {
				if o.Kind() == "Namespace" {
					objects["Namespace/"+o.Name()] = o
				}
			}
		}
		for _, part := range parts.Objects {
			for _, row := range part.Rows {
				if row.Deviation != "" {
					used[row.Deviation] = true
					if parts.Deviations[row.Deviation] == "" {
						t.Errorf("%s: %s: there is no deviation %q", part.Operator, row.What, row.Deviation)
					}
					continue
				}
				if problem := part.missing(objects, row); problem != "" {
					t.Errorf("%s: %s: %s: %s", format, part.Operator, row.What, problem)
				}
			}
		}
	}
	if want := slices.Sorted(maps.Keys(parts.Deviations)); !slices.Equal(want, slices.Sorted(maps.Keys(used))) || len(want) > mostDeviations {
		t.Errorf("want at most %d deviations, each in use; listed %v, used %v", mostDeviations, want, slices.Sorted(maps.Keys(used)))
	}
}

// missing is what the bundle lacks of a row.
func (part operatorObject) missing(objects map[string]verify.Object, row operatorRow) string {
	name, at := part.Object, part.In+row.At
	if row.Object != "" {
		name, at = row.Object, row.At
	}
	o, there := objects[name]
	if !there {
		return "the bundle has no " + name
	}
	if row.At == "" {
		return ""
	}
	value, _, found := field.Find(o.Fields, at)
	if !found {
		return fmt.Sprintf("%s has no %s", name, at)
	}
	got, want := asJSON(value), asJSON(row.Is)
	if elements, isList := got.([]any); isList && slices.ContainsFunc(elements, func(e any) bool { return reflect.DeepEqual(e, want) }) {
		return ""
	}
	return cmp.Diff(want, got)
}

func asJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		panic(err)
	}
	return plain
}

// TestThePageOfTheParityIsMadeFromTheTable keeps docs/reference/openshift-parity.md.
func TestThePageOfTheParityIsMadeFromTheTable(t *testing.T) {
	const path = "../../docs/reference/openshift-parity.md"
	want := readParts(t).page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; go test ./generator/verify -run Parity -update writes it:\n%s", path, diff)
	}
}

func (p operatorParts) page() string {
	var b strings.Builder
	rows := 0
	for _, o := range p.Objects {
		rows += len(o.Rows)
	}
	fmt.Fprintf(&b, `# What OpenShift's operator deploys, and where a bundle has it

OpenShift's operator for Cinder deploys its driver from manifests, and completes them while it runs. This page lists both for a stand-alone
cluster, %d parts, and what a bundle for the target standalone has in their place. A test compares both forms of a bundle with each row.
The bundle has `+"`coexistence: adopt`, a ServiceMonitor, a NetworkPolicy, `trustedCA` and a proxy"+`. The page is made from the table of that test:
`+"`go test ./generator/verify -run Parity -update`"+`.

## Deviations

| name | what replaces it |
| --- | --- |
`, rows)
	for _, name := range slices.Sorted(maps.Keys(p.Deviations)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, p.Deviations[name])
	}
	for _, o := range p.Objects {
		fmt.Fprintf(&b, "\n## %s\n\n| the operator has | the bundle has |\n| --- | --- |\n", o.Operator)
		for _, r := range o.Rows {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(r.What, "|", `\|`), o.place(r))
		}
	}
	return b.String()
}

// place is where the bundle has a row.
func (part operatorObject) place(r operatorRow) string {
	object, at := part.Object, part.In+r.At
	if r.Object != "" {
		object, at = r.Object, r.At
	}
	switch {
	case r.Deviation != "":
		return "deviation " + r.Deviation
	case r.At == "":
		return "`" + object + "`"
	}
	return "`" + object + "` `" + at + "`"
}
