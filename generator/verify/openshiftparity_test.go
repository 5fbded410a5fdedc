package verify_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the pages that this package makes")

// operatorParts is what OpenShift's operator deploys; testdata/openshift-parity.yaml describes its fields.
type operatorParts struct {
	Read       string // the repository and the commit
	Deploys    struct{ Both, Made, Standalone, Hosted []string }
	Deviations map[string]string
	Objects    []operatorObject // of a stand-alone cluster, and of a hosted one
	Hosted     []operatorObject // of a hosted one alone
}

type operatorObject struct {
	Operator, Object, In string
	Of                   []string     // the objects of the operator that it is about
	Only                 string       // standalone: a hosted cluster does not have it
	Hosted               *operatorRow // of a hosted cluster: another object, or a deviation for all rows
	Sidecar, Proxy       bool         // it has the rows of every sidecar, or of every kube-rbac-proxy
	Rows                 []operatorRow
}

type operatorRow struct {
	What, Object, At, Deviation string
	Is                          any
	Hosted                      *operatorRow // what differs on a hosted cluster
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
		{What: "request memory", Deviation: "sidecars"},
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
	text := testfile.Read(t, "testdata/openshift-parity.yaml")
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

// onHosted is the part as a hosted cluster has it: each row with its plane, and those that differ from a stand-alone cluster.
func (part operatorObject) onHosted() (all, differing operatorObject) {
	hosted := part
	hosted.Object, hosted.Rows = withPlane(part.Object), nil
	if h := part.Hosted; h != nil && h.Object != "" {
		hosted.Object = h.Object
	}
	if h := part.Hosted; h != nil && h.Deviation != "" {
		hosted.Rows = []operatorRow{{What: "it", Deviation: h.Deviation}}
		return hosted, hosted
	}
	differing = hosted
	for _, r := range part.Rows {
		row := r
		switch h := r.Hosted; {
		case h != nil && h.Deviation != "":
			row = operatorRow{What: cmp.Or(h.What, r.What), Deviation: h.Deviation}
		case h != nil:
			row = operatorRow{What: cmp.Or(h.What, r.What), Object: cmp.Or(h.Object, withPlane(r.Object)), At: cmp.Or(h.At, r.At), Is: r.Is}
			if h.Is != nil {
				row.Is = h.Is
			}
		default:
			row.Object = withPlane(r.Object)
		}
		hosted.Rows = append(hosted.Rows, row)
		if r.Hosted != nil {
			differing.Rows = append(differing.Rows, row)
		}
	}
	return hosted, differing
}

// withPlane is a place in the plane that has it.
func withPlane(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	switch kind {
	case "":
		return ""
	case "Deployment", "PodDisruptionBudget", "NetworkPolicy":
		return "management/" + object
	case "ConfigMap", "ServiceAccount":
		if !strings.HasPrefix(name, "cinder-csi-node") {
			return "management/" + object
		}
	}
	return "guest/" + object
}

// hosted are all parts of a hosted cluster.
func (p operatorParts) hosted() []operatorObject {
	var all []operatorObject
	for _, part := range p.Objects {
		if part.Only == "" {
			hosted, _ := part.onHosted()
			all = append(all, hosted)
		}
	}
	return append(all, p.Hosted...)
}

// adopting is a configuration that switches on what the operator deploys.
func adopting() v1alpha1.Spec {
	return v1alpha1.Spec{
		ClusterID:     "prod-x7k2p",
		OpenShift:     v1alpha1.OpenShift{Coexistence: v1alpha1.Adopt, ControlPlaneTopology: v1alpha1.HighlyAvailable, ClusterNetworks: []string{"10.128.0.0/14", "172.30.0.0/16"}},
		Monitoring:    v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
		NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true},
		TrustedCA:     true,
		Roles:         v1alpha1.Roles{Controller: v1alpha1.RolePods{Proxy: v1alpha1.Proxy{HTTPS: "http://proxy.example:3128", NoProxy: "example.org"}}},
	}
}

// hostedLike is a configuration of a hosted cluster with what the operator takes from the HostedControlPlane and its own environment.
func hostedLike() v1alpha1.Spec {
	user := int64(1001)
	return v1alpha1.Spec{
		HyperShift: v1alpha1.HyperShift{InfraID: "prod-x7k2p", Platform: "OpenStack"},
		Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
		TrustedCA:  true,
		Roles: v1alpha1.Roles{
			Controller: v1alpha1.RolePods{
				NodeSelector: map[string]string{"storage": "yes"}, Tolerations: []v1alpha1.Toleration{{Key: "storage", Operator: "Exists"}},
				PodLabels: map[string]string{"team": "storage"}, ImagePullSecrets: []string{"pull-secret"}, RunAsUser: &user,
				Proxy: v1alpha1.Proxy{HTTPS: "http://proxy.example:3128", NoProxy: "example.org"},
			},
			Node: v1alpha1.RolePods{Images: v1alpha1.Images{Driver: v1alpha1.Image{Registry: "guest.example", Repository: "driver", Tag: "v1"}}},
		},
	}
}

// byName are the objects of a bundle by kind and name, and by plane where there are two.
func byName(objects []verify.Object) map[string]verify.Object {
	all := map[string]verify.Object{}
	for _, o := range objects {
		name := o.Kind() + "/" + o.Name()
		if o.Plane == "management" || o.Plane == "guest" {
			name = o.Plane + "/" + name
		}
		all[name] = o
	}
	return all
}

// TestABundleHasWhatOpenShiftsOperatorDeploys compares both forms of a bundle with the operator's inventory, for a stand-alone cluster and for
// a hosted one.
func TestABundleHasWhatOpenShiftsOperatorDeploys(t *testing.T) {
	parts := readParts(t)
	used := map[string]bool{}
	for _, cluster := range []struct {
		target v1alpha1.Target
		spec   v1alpha1.Spec
		parts  []operatorObject
	}{{v1alpha1.Standalone, adopting(), parts.Objects}, {v1alpha1.HostedControlPlane, hostedLike(), parts.hosted()}} {
		r := decide(t, cluster.spec, clouds["topology on"], cluster.target)
		kustomize := byName(build(t, r, v1alpha1.Kustomize))
		helm := byName(build(t, r, v1alpha1.Helm))
		for name, o := range kustomize {
			if o.Kind() == "Namespace" { // Namespaces are beside the chart
				helm[name] = o
			}
		}
		for format, objects := range map[v1alpha1.Format]map[string]verify.Object{v1alpha1.Kustomize: kustomize, v1alpha1.Helm: helm} {
			for _, part := range cluster.parts {
				for _, row := range part.Rows {
					if row.Deviation != "" {
						used[row.Deviation] = true
						if parts.Deviations[row.Deviation] == "" {
							t.Errorf("%s: %s: there is no deviation %q", part.Operator, row.What, row.Deviation)
						}
						continue
					}
					if problem := part.missing(objects, row); problem != "" {
						t.Errorf("%s %s: %s: %s: %s", cluster.target, format, part.Operator, row.What, problem)
					}
				}
			}
		}
	}
	if want := slices.Sorted(maps.Keys(parts.Deviations)); !slices.Equal(want, slices.Sorted(maps.Keys(used))) || len(want) > mostDeviations {
		t.Errorf("want at most %d deviations, each in use; listed %v, used %v", mostDeviations, want, slices.Sorted(maps.Keys(used)))
	}
}

// TestEveryObjectOfOpenShiftsOperatorHasAPart fails for an object of the operator that no part of the table is about, on either kind of cluster.
func TestEveryObjectOfOpenShiftsOperatorHasAPart(t *testing.T) {
	parts := readParts(t)
	for cluster, test := range map[string]struct {
		deploys []string
		parts   []operatorObject
	}{
		"standalone": {slices.Concat(parts.Deploys.Both, parts.Deploys.Made, parts.Deploys.Standalone), parts.Objects},
		"hosted":     {slices.Concat(parts.Deploys.Both, parts.Deploys.Made, parts.Deploys.Hosted), parts.hosted()},
	} {
		var of []string
		for _, part := range test.parts {
			if of = append(of, part.Of...); len(part.Of) > 0 && len(part.Rows) == 0 {
				t.Errorf("%s: %s has no rows", cluster, part.Operator)
			}
		}
		slices.Sort(of)
		slices.Sort(test.deploys)
		if diff := gocmp.Diff(slices.Compact(test.deploys), slices.Compact(of)); diff != "" {
			t.Errorf("%s: the objects of the operator, and those with a part (-want +got):\n%s", cluster, diff)
		}
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
	return gocmp.Diff(want, got)
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

// TestThePageOfTheParityIsMadeFromTheTable keeps the deviations and all parts in OPENSHIFT.md, and their numbers in docs/reference/openshift-parity.md.
func TestThePageOfTheParityIsMadeFromTheTable(t *testing.T) {
	const with = "go test ./generator/verify -run Parity -update"
	parts := readParts(t)
	page.Hold(t, "OPENSHIFT.md", map[string]string{"deviations": parts.deviations(), "parity": parts.tables()}, *update, with)
	text := testfile.Text(t, "../../docs/reference/openshift-parity.md")
	if want := fmt.Sprintf("The operator has %d parts on a stand-alone cluster and %d on a hosted one.", rows(parts.Objects), rows(parts.hosted())); !strings.Contains(text, want) {
		t.Errorf("docs/reference/openshift-parity.md: want %q", want)
	}
}

func (p operatorParts) deviations() string {
	var b strings.Builder
	fmt.Fprintf(&b, `The operator has %d parts on a stand-alone cluster and %d on a hosted one (HyperShift). They were read at `+"`%s`"+`:
the generated assets, and the hooks that change the workloads at run time.

| name | what replaces it |
| --- | --- |
`, rows(p.Objects), rows(p.hosted()), p.Read)
	for _, name := range slices.Sorted(maps.Keys(p.Deviations)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, p.Deviations[name])
	}
	return b.String()
}

func (p operatorParts) tables() string {
	var b strings.Builder
	sections(&b, p.Objects)
	differing := p.differing()
	fmt.Fprintf(&b, "\n## On a hosted cluster\n\nThe %d parts that differ from a stand-alone cluster. A place begins with the plane of the bundle. The other %d parts are\n"+
		"as above: those of the controller in the plane `management`, all others in the plane `guest`. The operator has no %s there.\n",
		rows(differing), rows(p.hosted())-rows(differing), strings.Join(p.standaloneOnly(), ", no "))
	sections(&b, differing)
	return b.String()
}

// differing are the parts of a hosted cluster with the rows that a stand-alone one has not, or has otherwise.
func (p operatorParts) differing() []operatorObject {
	var all []operatorObject
	for _, part := range p.Objects {
		if _, differing := part.onHosted(); part.Only == "" && len(differing.Rows) > 0 {
			all = append(all, differing)
		}
	}
	return append(all, p.Hosted...)
}

// standaloneOnly are the kinds of objects that a hosted cluster does not have.
func (p operatorParts) standaloneOnly() []string {
	var kinds []string
	for _, name := range p.Deploys.Standalone {
		if kind, _, _ := strings.Cut(name, "/"); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func rows(objects []operatorObject) int {
	n := 0
	for _, o := range objects {
		n += len(o.Rows)
	}
	return n
}

func sections(b *strings.Builder, objects []operatorObject) {
	for _, o := range objects {
		title := o.Operator
		if strings.HasPrefix(o.Object, "management/") || strings.HasPrefix(o.Object, "guest/") {
			title = "Hosted: " + title
		}
		fmt.Fprintf(b, "\n## %s\n\n| the operator has | the bundle has |\n| --- | --- |\n", title)
		for _, r := range o.Rows {
			fmt.Fprintf(b, "| %s | %s |\n", strings.ReplaceAll(r.What, "|", `\|`), o.place(r))
		}
	}
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
