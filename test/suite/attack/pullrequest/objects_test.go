package pullrequest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	render "github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The exceptions from the rules for all containers, each with its reason. A key is "ROLE/CONTAINER what", with " (OpenShift)" if it applies
// to OpenShift only. The test fails for any other exception, and for an exception that no object needs.
var exceptions = map[string]string{
	"node/driver privileged":                "mounts file systems into the host's tree, opens device nodes",
	"node/registrar privileged (OpenShift)": "SELinux keeps an ordinary container from kubelet's directories",
	"node root":                             "mounting needs root",
	"node host network":                     "the metadata service has a link-local address",

	"cinder-csi-metrics-reader Secret (OpenShift)":      "the token by which Prometheus reads metrics; Kubernetes fills it in, the bundle has no data",
	"cinder-csi-metrics-reader URLs (OpenShift)":        "may get /metrics, and nothing else",
	"cinder-csi-controller-prometheus pods (OpenShift)": "Prometheus of the platform finds the pods that it scrapes",
	"cinder-csi-node-prometheus pods (OpenShift)":       "Prometheus of the platform finds the pods that it scrapes",
}

// sidecars are the containers that call the API server of the cluster whose claims are served.
var sidecars = []string{"provisioner", "attacher", "resizer", "snapshotter"}

// proxies ask the API server who scrapes metrics (TokenReview, SubjectAccessReview).
var proxies = []string{"kube-rbac-proxy-driver", "kube-rbac-proxy-provisioner", "kube-rbac-proxy-attacher", "kube-rbac-proxy-resizer", "kube-rbac-proxy-snapshotter"}

// tokens are the containers that call the API server of the cluster they run in.
var tokens = slices.Concat(sidecars, proxies)

// secrets are the containers that may mount each Secret.
var secrets = map[string][]string{"cloud": {"driver", "generator"}, "hosted-kubeconfig": sidecars, "admin-kubeconfig": {"guest-token"}, "metrics-tls": proxies}

// hostPaths are all directories of the host that the node pods see.
func hostPaths(driver string, openShift bool) []string {
	paths := []string{"/dev", "/var/lib/kubelet", "/var/lib/kubelet/plugins/" + driver, "/var/lib/kubelet/plugins_registry"}
	if openShift {
		paths = append(paths, "/etc/selinux", "/sys/fs")
	}
	slices.Sort(paths)
	return paths
}

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// objects checks the objects of one bundle.
type objects struct {
	t         *testing.T
	openShift bool
	settings  map[string]string // PVC_ANNOTATIONS and so on, of the controller
	driver    string
	used      map[string]bool // exceptions
}

func TestEmittedObjectsAskForNoMoreThanTheyNeed(t *testing.T) {
	used := map[string]bool{}
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	testfile.Write(t, strict, "spec:\n  driver: {pvcAnnotations: false}\n  networkPolicy: {enabled: true}\n  driftCheck: {schedule: '0 6 * * *'}\n", 0o644)
	for _, target := range []string{"vanilla", "standalone", "hypershift"} {
		for _, format := range []string{"kustomize", "helm"} {
			for name, dir := range map[string]string{
				"overlays": "../../../../overlays/" + target + "/" + format,
				"strict":   bundle(t, filepath.Join(t.TempDir(), "out"), target, format, "--config", strict),
			} {
				t.Run(name+"/"+target+"/"+format, func(t *testing.T) {
					o := objects{t: t, openShift: target != "vanilla", used: used}
					o.check(built(t, name, dir))
				})
			}
		}
	}
	for line := range exceptions {
		if !used[line] {
			t.Errorf("the exception %q is not needed", line)
		}
	}
}

func built(t *testing.T, name, dir string) []verify.Object {
	t.Helper()
	opened := testenv.Value(worktree.Open(dir))(t)
	tree := testenv.Value(opened.Read())(t)
	var base render.Tree
	if name == "overlays" {
		base = testenv.Value(render.Base(verify.Chart, opened.Plan.Target))(t)
		base = base.At("../../../manifests/" + string(opened.Plan.Target)) // seen from the bundle
	}
	all, findings, err := verify.BundleAt(dir, base, tree, opened.Plan.Target, opened.Plan.Format)
	if err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
	return all
}

func decode[T any](t *testing.T, o verify.Object) *T {
	t.Helper()
	text := testenv.Value(json.Marshal(o.Fields))(t)
	into := new(T)
	testenv.Must(t, json.Unmarshal(text, into))
	return into
}

func (o *objects) check(all []verify.Object) {
	for _, object := range all {
		switch object.Kind() {
		case "CSIDriver":
			o.driver = object.Name()
		case "ConfigMap":
			if object.Name() == "cinder-csi-controller-settings" {
				o.settings = decode[corev1.ConfigMap](o.t, object).Data
			}
		}
	}
	for _, object := range all {
		switch object.Kind() {
		case "Secret":
			if s := decode[corev1.Secret](o.t, object); s.Type != corev1.SecretTypeServiceAccountToken || len(s.Data)+len(s.StringData) > 0 || !o.allowed(s.Name+" Secret") {
				o.t.Errorf("%s: a bundle holds no Secret", object)
			}
		case "Deployment":
			o.pod("controller", decode[appsv1.Deployment](o.t, object).Spec.Template.Spec)
		case "DaemonSet":
			o.pod("node", decode[appsv1.DaemonSet](o.t, object).Spec.Template.Spec)
		case "CronJob":
			o.pod("drift-check", decode[batchv1.CronJob](o.t, object).Spec.JobTemplate.Spec.Template.Spec)
		case "ServiceAccount":
			if automount := decode[corev1.ServiceAccount](o.t, object).AutomountServiceAccountToken; automount == nil || *automount {
				o.t.Errorf("%s: mounts its token into every container", object)
			}
		case "Role", "ClusterRole":
			o.role(object, decode[rbacv1.ClusterRole](o.t, object).Rules)
		case "NetworkPolicy":
			o.networkPolicy(decode[networkingv1.NetworkPolicy](o.t, object))
		case "Namespace":
			level := "restricted"
			if object.Name() == "cinder-csi-node" || object.Name() == "cinder-csi" && object.Plane == "guest" {
				level = "privileged"
			}
			if got := decode[corev1.Namespace](o.t, object).Labels["pod-security.kubernetes.io/enforce"]; got != level {
				o.t.Errorf("%s: enforces %q, want %q", object, got, level)
			}
		}
	}
}

// allowed reports whether the list has an exception.
func (o *objects) allowed(what string) bool {
	for _, line := range []string{what, what + " (OpenShift)"} {
		if _, ok := exceptions[line]; ok && (line == what || o.openShift) {
			o.used[line] = true
			return true
		}
	}
	return false
}

func isTrue(b *bool) bool { return b != nil && *b }

func (o *objects) pod(role string, pod corev1.PodSpec) {
	t := o.t
	if automount := pod.AutomountServiceAccountToken; automount == nil || *automount {
		t.Errorf("%s: the token is mounted into every container", role)
	}
	if pod.HostPID || pod.HostIPC || pod.ShareProcessNamespace != nil || pod.HostNetwork && !o.allowed(role+" host network") {
		t.Errorf("%s: shares namespaces", role)
	}
	s := pod.SecurityContext
	if s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: runs without seccomp", role)
	}
	if s == nil || !isTrue(s.RunAsNonRoot) && !o.allowed(role+" root") {
		t.Errorf("%s: may run as root", role)
	}
	if len(pod.EphemeralContainers) > 0 {
		t.Errorf("%s: has containers that are not checked", role)
	}
	var onHost []string
	sources := map[string]corev1.VolumeSource{}
	for _, v := range pod.Volumes {
		sources[v.Name] = v.VolumeSource
		if v.HostPath != nil {
			onHost = append(onHost, v.HostPath.Path)
		}
	}
	slices.Sort(onHost)
	if want := hostPaths(o.driver, o.openShift); role == "node" && !slices.Equal(want, onHost) || role != "node" && onHost != nil {
		t.Errorf("%s: want %v of the host, got %v", role, want, onHost)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		o.container(role, c, sources)
	}
}

func (o *objects) container(role string, c corev1.Container, volumes map[string]corev1.VolumeSource) {
	name := role + "/" + c.Name
	s := c.SecurityContext
	if s == nil {
		o.t.Errorf("%s: has no security context", name)
		return
	}
	if isTrue(s.Privileged) || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil ||
		!slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 || s.SeccompProfile != nil {
		if !o.allowed(name + " privileged") {
			o.t.Errorf("%s: may gain privileges", name)
		}
	}
	if !isTrue(s.ReadOnlyRootFilesystem) {
		o.t.Errorf("%s: can write to its root file system", name)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		o.t.Errorf("%s: requests no resources", name)
	}
	_, tag, tagged := strings.Cut(c.Image[strings.LastIndexByte(c.Image, '/')+1:], ":")
	if !strings.Contains(c.Image, "@sha256:") && (!tagged || tag == "" || tag == "latest") {
		o.t.Errorf("%s: image %q may change under its name", name, c.Image)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			o.t.Errorf("%s: %s comes from elsewhere", name, e.Name)
		}
	}
	o.mounts(role, c, volumes)
}

func isToken(s corev1.VolumeProjection) bool  { return s.ServiceAccountToken != nil }
func isSecret(s corev1.VolumeProjection) bool { return s.Secret != nil }

func (o *objects) mounts(role string, c corev1.Container, volumes map[string]corev1.VolumeSource) {
	usesToken := role == "drift-check" || role == "controller" && o.settings["SIDECAR_KUBECONFIG"] == "" &&
		(slices.Contains(tokens, c.Name) || c.Name == "driver" && o.settings["PVC_ANNOTATIONS"] == "true")
	hasToken := false
	for _, m := range c.VolumeMounts {
		source := volumes[m.Name]
		if source.Projected != nil && slices.ContainsFunc(source.Projected.Sources, isToken) {
			hasToken = true
			if m.MountPath != tokenPath || !m.ReadOnly {
				o.t.Errorf("%s/%s: mounts a token at %s", role, c.Name, m.MountPath)
			}
		}
		fromSecret := source.Secret != nil || source.Projected != nil && slices.ContainsFunc(source.Projected.Sources, isSecret)
		if fromSecret && (role == "node" || !m.ReadOnly || !slices.Contains(secrets[m.Name], c.Name)) {
			o.t.Errorf("%s/%s: mounts Secret volume %s", role, c.Name, m.Name)
		}
	}
	if hasToken != usesToken {
		o.t.Errorf("%s/%s: has the pod's token: %t, uses it: %t", role, c.Name, hasToken, usesToken)
	}
}

func (o *objects) role(object verify.Object, rules []rbacv1.PolicyRule) {
	for _, r := range rules {
		if len(r.NonResourceURLs) > 0 && (fmt.Sprint(r.NonResourceURLs, r.Verbs) != "[/metrics] [get]" || !o.allowed(object.Name()+" URLs")) {
			o.t.Errorf("%s: has URLs", object)
		}
		finds := fmt.Sprint(r.Verbs) == "[get list watch]" && slices.Contains(r.Resources, "pods") && o.allowed(object.Name()+" pods")
		for _, word := range slices.Concat(r.APIGroups, r.Resources, r.Verbs) {
			if strings.Contains(word, "*") || slices.Contains([]string{
				"secrets", "pods", "pods/exec", "nodes/proxy", "serviceaccounts/token", "escalate", "bind", "impersonate", "deletecollection",
			}, word) && !(finds && word == "pods") {
				o.t.Errorf("%s: has %q", object, word)
			}
		}
		if slices.Contains(r.Resources, "leases") && fmt.Sprint(r.Verbs) != "[create]" && (fmt.Sprint(r.Verbs) != "[get update]" || len(r.ResourceNames) != 1) {
			o.t.Errorf("%s: has the leases of others: %v %v", object, r.Verbs, r.ResourceNames)
		}
		if slices.Contains(r.Verbs, "use") && (!o.openShift || fmt.Sprint(r.ResourceNames) != "[privileged]") {
			o.t.Errorf("%s: may use %v", object, r.ResourceNames)
		}
	}
}

func (o *objects) networkPolicy(policy *networkingv1.NetworkPolicy) {
	spec := policy.Spec
	if len(spec.PolicyTypes) != 2 {
		o.t.Errorf("the network policy is for %v only", spec.PolicyTypes)
	}
	for i, rule := range spec.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) == 0 {
			o.t.Errorf("ingress rule %d lets anybody in, or to any port", i)
		}
	}
	if !o.openShift && len(spec.Ingress) > 0 {
		o.t.Errorf("want nobody let in who is not configured, got %v", spec.Ingress)
	}
	anywhere := 0
	for i, rule := range spec.Egress {
		if len(rule.Ports) == 0 {
			o.t.Errorf("egress rule %d allows any port", i)
		}
		for _, p := range rule.Ports {
			if p.Port == nil {
				o.t.Errorf("egress rule %d allows any port", i)
			} else if n := p.Port.IntValue(); len(rule.To) == 0 && (n == 53 || n == 5353) {
				o.t.Errorf("egress rule %d lets DNS go anywhere", i)
			}
		}
		if len(rule.To) == 0 {
			anywhere++
		}
	}
	want := 2 // the API server, which no selector can name, and OpenStack, whose endpoints here are host names
	if o.settings["SIDECAR_KUBECONFIG"] != "" && policy.Name == "cinder-csi-controller" {
		want = 1 // the API server of the guest runs beside the controller
	}
	if anywhere != want {
		o.t.Errorf("want %d rules without addresses, got %d", want, anywhere)
	}
}

// With networkPolicy.enabled, every pod that mounts the credentials of the cloud reaches nothing but what it needs.
func TestEveryPodWithTheCredentialsHasANetworkPolicy(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	testfile.Write(t, config, "spec:\n  networkPolicy: {enabled: true}\n  driftCheck: {schedule: '0 6 * * *'}\n", 0o644)
	for _, target := range []string{"vanilla", "standalone", "hypershift"} {
		t.Run(target, func(t *testing.T) {
			selected, pods := map[string]bool{}, 0
			all := built(t, "", bundle(t, filepath.Join(t.TempDir(), "out"), target, "kustomize", "--config", config))
			for _, object := range all {
				if object.Kind() == "NetworkPolicy" {
					selected[decode[networkingv1.NetworkPolicy](t, object).Spec.PodSelector.MatchLabels["app"]] = true
				}
			}
			for _, object := range all {
				var labels map[string]string
				switch object.Kind() {
				case "Deployment":
					labels = decode[appsv1.Deployment](t, object).Spec.Template.Labels
				case "CronJob":
					labels = decode[batchv1.CronJob](t, object).Spec.JobTemplate.Spec.Template.Labels
				default:
					continue
				}
				if pods++; !selected[labels["app"]] {
					t.Errorf("%s: no NetworkPolicy selects its pods", object)
				}
			}
			if pods != 2 {
				t.Errorf("want the controller and the drift check, got %d", pods)
			}
		})
	}
}

// A kubelet may read every Secret of the pods on its node. So a compromised worker has the credentials of the project if it ran one of these pods.
func TestTheCredentialsPreferTheControlPlane(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	testfile.Write(t, config, "spec:\n  driftCheck: {schedule: '0 6 * * *'}\n", 0o644)
	const label = "node-role.kubernetes.io/control-plane"
	for _, target := range []string{"vanilla", "standalone"} { // on hypershift the nodes of hosted control planes are preferred
		for _, object := range built(t, "", bundle(t, filepath.Join(t.TempDir(), "out"), target, "kustomize", "--config", config)) {
			var pod corev1.PodSpec
			switch object.Kind() {
			case "Deployment":
				pod = decode[appsv1.Deployment](t, object).Spec.Template.Spec
			case "CronJob":
				pod = decode[batchv1.CronJob](t, object).Spec.JobTemplate.Spec.Template.Spec
			default:
				continue
			}
			_, selected := pod.NodeSelector[label]
			tolerated := slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Key == label })
			preferred := pod.Affinity != nil && pod.Affinity.NodeAffinity != nil && slices.ContainsFunc(pod.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, func(term corev1.PreferredSchedulingTerm) bool {
				return slices.ContainsFunc(term.Preference.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == label })
			})
			if !tolerated || !selected && !preferred {
				t.Errorf("%s: %s: tolerates the control plane: %t, selects it: %t, prefers it: %t", target, object, tolerated, selected, preferred)
			}
		}
	}
}

// If the configuration has digests, no tag can change the images of the bundle: each image of each target, also those of one role alone.
func TestDigestsPinImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	pin := func(names ...string) (text string) {
		for _, name := range names {
			text += name + `: {tag: v1, digest: "` + digest + `"}, `
		}
		return text
	}
	common := slices.Concat(sidecars, []string{"registrar", "livenessprobe", "rbacproxy", "generator"})
	for name, config := range map[string]string{
		"of the bundle": "images: {" + pin(slices.Concat(common, []string{"driver"})...) + "}, roles: {controller: {replicas: 1}}",
		"of a role":     "images: {" + pin(common...) + "}, roles: {controller: {images: {" + pin("driver") + "}}, node: {images: {" + pin("driver") + "}}}",
	} {
		for target, want := range map[string]int{"vanilla": 10, "standalone": 15, "hypershift": 10} {
			more := map[string]string{"vanilla": ", driftCheck: {schedule: '@daily'}", "standalone": ", driftCheck: {schedule: '@daily'}, monitoring: {kind: ServiceMonitor}"}[target]
			path := filepath.Join(t.TempDir(), "config.yaml")
			testfile.Write(t, path, "spec: {"+config+more+"}", 0o644)
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				dir := bundle(t, filepath.Join(t.TempDir(), "out"), target, string(format), "--config", path)
				seen := 0
				for _, object := range built(t, "", dir) {
					for _, image := range images(object.Fields) {
						seen++
						if repository, got, _ := strings.Cut(image, "@"); got != digest || strings.Contains(repository, ":") {
							t.Errorf("%s: %s %s: %s: want the digest alone, got %s", name, target, format, object, image)
						}
					}
				}
				if seen != want {
					t.Errorf("%s: %s %s: want %d containers, saw %d", name, target, format, want, seen)
				}
			}
		}
	}
}

// images are the values of every key "image" of an object.
func images(value any) (all []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if image, is := field.(string); is && key == "image" {
				all = append(all, image)
			}
			all = append(all, images(field)...)
		}
	case []any:
		for _, e := range v {
			all = append(all, images(e)...)
		}
	}
	return all
}
