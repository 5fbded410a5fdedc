package charts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// as reads an object into its Kubernetes type.
func as[T any](t *testing.T, o verify.Object) T {
	t.Helper()
	text, err := json.Marshal(o.Fields)
	if err != nil {
		t.Fatal(err)
	}
	var typed T
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// containers gives the containers of both roles by role and name.
func containers(t *testing.T, values string) map[string]corev1.Container {
	t.Helper()
	all := objects(t, parse(t, values))
	byName := map[string]corev1.Container{}
	for _, c := range as[appsv1.Deployment](t, all[deployment]).Spec.Template.Spec.Containers {
		byName["controller."+c.Name] = c
	}
	for _, c := range as[appsv1.DaemonSet](t, all[daemonSet]).Spec.Template.Spec.Containers {
		byName["node."+c.Name] = c
	}
	return byName
}

func TestAValueOfAContainerChangesThatContainerAlone(t *testing.T) {
	before := containers(t, "")
	for key, value := range map[string]string{
		"extraArgs": "[--flag=1]", "extraEnv": "[{name: A, value: b}]", "extraVolumeMounts": "[{name: extra, mountPath: /extra}]",
		"livenessProbe": "{periodSeconds: 7}", "resources": "{limits: {memory: 1Gi}}",
	} {
		for id := range before {
			role, container, _ := strings.Cut(id, ".")
			if key == "livenessProbe" && container == "livenessprobe" {
				continue // it answers the probe of the driver and has none
			}
			after := containers(t, fmt.Sprintf("%s: {%s: {%s: %s}}", role, key, container, value))
			for other := range before {
				if same := cmp.Equal(before[other], after[other]); same == (other == id) {
					t.Errorf("%s.%s.%s: container %s is unchanged: %t", role, key, container, other, same)
				}
			}
		}
	}
}

func TestAnAdditionalArgumentReplacesTheOneWithItsFlag(t *testing.T) {
	args := containers(t, "controller: {extraArgs: {attacher: [--timeout=9m, --retry-interval-max=1m]}}")["controller.attacher"].Args
	if slices.Contains(args, "--timeout=3m") || !slices.Contains(args, "--timeout=9m") || !slices.Contains(args, "--retry-interval-max=1m") {
		t.Errorf("want --timeout=9m once, and --retry-interval-max=1m, got %q", args)
	}
}

func TestAnAdditionalVariableReplacesTheProxyVariable(t *testing.T) {
	got := containers(t, "node: {proxy: {http: 'http://a', https: 'http://b', noProxy: c}, extraEnv: {driver: [{name: HTTPS_PROXY, value: d}]}}")["node.driver"].Env
	want := []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://a"}, {Name: "NO_PROXY", Value: "c"}, {Name: "HTTPS_PROXY", Value: "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOneRegistryServesAllImagesAndOneImageMayHaveItsOwnPullPolicy(t *testing.T) {
	for id, c := range containers(t, "images: {registry: 'mirror.example:5000/all', pullPolicy: Always, node: {driver: {pullPolicy: Never}}}") {
		want := corev1.PullAlways
		if id == "node.driver" {
			want = corev1.PullNever
		}
		if !strings.HasPrefix(c.Image, "mirror.example:5000/all/") || c.ImagePullPolicy != want {
			t.Errorf("%s: image %s, pull policy %s", id, c.Image, c.ImagePullPolicy)
		}
	}
}

const pools = `
nodePools:
- {name: gpu, nodeSelector: {pool: gpu}, tolerations: [], volumeAttachLimit: 20}
- {name: big, nodeSelector: {pool: big}}
`

func TestANodePoolHasItsOwnSelectorTolerationsAndAttachLimit(t *testing.T) {
	all := objects(t, parse(t, pools))
	gpu := as[appsv1.DaemonSet](t, all["DaemonSet/cinder-csi-node-gpu"])
	pod := gpu.Spec.Template.Spec
	if diff := cmp.Diff(map[string]string{"pool": "gpu", "kubernetes.io/os": "linux"}, pod.NodeSelector); diff != "" {
		t.Error(diff)
	}
	if len(pod.Tolerations) != 0 {
		t.Errorf("want no tolerations, got %v", pod.Tolerations)
	}
	if selector, labels := gpu.Spec.Selector.MatchLabels["app"], gpu.Spec.Template.Labels["app"]; selector != "cinder-csi-node-gpu" || labels != selector {
		t.Errorf("the DaemonSet selects %q, its pods are %q", selector, labels)
	}
	if args := pod.Containers[0].Args; !slices.Contains(args, "--cloud-config=/etc/cinder-csi/config/pool-gpu.conf") {
		t.Errorf("the driver does not read the limit of the pool: %q", args)
	}
	config := as[corev1.ConfigMap](t, all[nodeConfig])
	if want, got := "[BlockStorage]\nnode-volume-attach-limit = 20\n", config.Data["pool-gpu.conf"]; want != got {
		t.Errorf("want %q, got %q", want, got)
	}
	big := as[appsv1.DaemonSet](t, all["DaemonSet/cinder-csi-node-big"]).Spec.Template.Spec
	if len(big.Tolerations) != 1 || len(config.Data) != 2 {
		t.Errorf("a pool without tolerations and limit has those of all nodes; got %v and the files of %v", big.Tolerations, config.Data)
	}
}

// The paths of the host, the mount that must have the same path, and what the registrar tells kubelet.
func TestANodePoolHasItsOwnKubeletDirectory(t *testing.T) {
	for _, drainHook := range []bool{false, true} {
		all := objects(t, parse(t, fmt.Sprintf("nodePools: [{name: k0s, nodeSelector: {os: k0s}, kubeletDir: /var/lib/k0s/kubelet}]\nnodeLifecycle: {drainHook: %t}", drainHook)))
		for id, want := range map[string]string{daemonSet: "/var/lib/kubelet", daemonSet + "-k0s": "/var/lib/k0s/kubelet"} {
			pod := as[appsv1.DaemonSet](t, all[id]).Spec.Template.Spec
			for name, path := range map[string]string{"plugin-dir": want + "/plugins/cinder.csi.openstack.org", "registration-dir": want + "/plugins_registry", "kubelet-dir": want} {
				if i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name }); pod.Volumes[i].HostPath.Path != path {
					t.Errorf("%s: volume %s: want %s, got %s", id, name, path, pod.Volumes[i].HostPath.Path)
				}
			}
			mounts := pod.Containers[0].VolumeMounts
			if i := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == "kubelet-dir" }); mounts[i].MountPath != want {
				t.Errorf("%s: the driver mounts the directory of kubelet at %s", id, mounts[i].MountPath)
			}
			containers := slices.Concat(pod.InitContainers, pod.Containers)
			registrar := containers[slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "registrar" })]
			own := slices.Contains(registrar.Env, corev1.EnvVar{Name: "KUBELET_DIR", Value: want})
			if pool := id != daemonSet; own != pool {
				t.Errorf("%s: the registrar has the environment %v", id, registrar.Env)
			}
		}
	}
}

func TestTheOtherNodePodsLeaveThePoolsOutInEachTermOfTheirAffinity(t *testing.T) {
	pool := []corev1.NodeSelectorRequirement{
		{Key: "pool", Operator: "NotIn", Values: []string{"gpu"}}, {Key: "pool", Operator: "NotIn", Values: []string{"big"}},
	}
	term := func(own ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: append(own, pool...)}
	}
	for name, c := range map[string]struct {
		values string
		want   []corev1.NodeSelectorTerm
	}{
		"no affinity": {"", []corev1.NodeSelectorTerm{term()}},
		"two terms": {
			"node: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}}",
			[]corev1.NodeSelectorTerm{term(corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists"}), term(corev1.NodeSelectorRequirement{Key: "b", Operator: "Exists"})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := as[appsv1.DaemonSet](t, objects(t, parse(t, pools+c.values))[daemonSet]).Spec.Template.Spec
			got := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheTestUsesTheNamedClassThenTheDefaultThenTheFirst(t *testing.T) {
	class := func(name string, isDefault bool) string {
		return fmt.Sprintf("{name: %s, default: %t, reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true}", name, isDefault)
	}
	for want, values := range map[string]string{
		"first":   fmt.Sprintf("storageClasses: [%s, %s]", class("first", false), class("second", false)),
		"default": fmt.Sprintf("storageClasses: [%s, %s, %s]", class("first", false), class("default", true), class("third", false)),
		"named":   fmt.Sprintf("helmTest: {storageClass: named}\nstorageClasses: [%s]", class("default", true)),
	} {
		pod := as[corev1.Pod](t, objects(t, parse(t, values))[testPod])
		if got := *pod.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; got != want {
			t.Errorf("want class %s, got %s", want, got)
		}
	}
}

// An additional object is no template: it cannot depend on the release or on the cluster.
func TestAnAdditionalObjectIsWrittenAsItIs(t *testing.T) {
	all := objects(t, parse(t, "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {a: '{{ .Release.Name }}'}}]"))
	if got := as[corev1.ConfigMap](t, all["ConfigMap/mine"]).Data["a"]; got != "{{ .Release.Name }}" {
		t.Errorf("got %q", got)
	}
}

// The rest of a class is what people expect of one.
func TestAClassNeedsItsNameAlone(t *testing.T) {
	for name, c := range map[string]struct {
		values, object string
		want           map[string]any
	}{
		"a StorageClass": {
			"storageClasses: [{name: fast}]", "StorageClass/fast",
			map[string]any{"reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true},
		},
		"a StorageClass with other answers": {
			"storageClasses: [{name: fast, reclaimPolicy: Retain, volumeBindingMode: Immediate, allowVolumeExpansion: false}]", "StorageClass/fast",
			map[string]any{"reclaimPolicy": "Retain", "volumeBindingMode": "Immediate", "allowVolumeExpansion": false},
		},
		"a VolumeSnapshotClass": {"snapshots: {extraClasses: [{name: b}]}", "VolumeSnapshotClass/b", map[string]any{"deletionPolicy": "Delete"}},
		"a VolumeSnapshotClass with another answer": {
			"snapshots: {extraClasses: [{name: b, deletionPolicy: Retain}]}", "VolumeSnapshotClass/b", map[string]any{"deletionPolicy": "Retain"},
		},
	} {
		fields := objects(t, parse(t, c.values))[c.object].Fields
		for key, want := range c.want {
			if fields[key] != want {
				t.Errorf("%s: %s is %v, want %v", name, key, fields[key], want)
			}
		}
	}
}
