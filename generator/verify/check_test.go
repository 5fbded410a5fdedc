package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// at finds a value in an object by keys and list indices.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			value = value.(map[string]any)[s]
		case int:
			value = value.([]any)[s]
		}
		if value == nil {
			t.Fatalf("%v: nothing at %v", path, step)
		}
	}
	return value
}

var pod = []any{"spec", "template", "spec"}

// container finds a container of a workload by name.
func container(t *testing.T, fields map[string]any, name string) map[string]any {
	t.Helper()
	for _, c := range at(t, fields, append(pod, "containers")...).([]any) {
		if c.(map[string]any)["name"] == name {
			return c.(map[string]any)
		}
	}
	t.Fatalf("there is no container %s", name)
	return nil
}

func addArg(t *testing.T, fields map[string]any, name, arg string) {
	t.Helper()
	c := container(t, fields, name)
	c["args"] = append(c["args"].([]any), arg)
}

// defects are what can be wrong with an object, each put into a bundle that is right.
var defects = []struct {
	name, kind, object string
	spoil              func(t *testing.T, fields map[string]any)
	want               string
}{
	{"a misspelt field", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, "spec").(map[string]any)["replica"] = 2.0
	}, `unknown field "spec.replica"`},
	{"a field in another case", "StorageClass", "standard", func(_ *testing.T, f map[string]any) {
		f["Provisioner"] = f["provisioner"]
	}, `unknown field "Provisioner"`},
	{"a field of another type", "PodDisruptionBudget", "", func(t *testing.T, f map[string]any) {
		at(t, f, "spec", "selector").(map[string]any)["matchLabels"] = "x"
	}, "cannot unmarshal"},
	{"a kind that is not ours", "PodDisruptionBudget", "", func(_ *testing.T, f map[string]any) {
		f["kind"] = "Ingress"
		f["apiVersion"] = "networking.k8s.io/v1"
	}, "kind Ingress"},
	{"no namespace", "ConfigMap", "cinder-csi-node-config", func(t *testing.T, f map[string]any) {
		delete(at(t, f, "metadata").(map[string]any), "namespace")
	}, "has no namespace"},
	{"a namespace where there is none", "CSIDriver", "", func(t *testing.T, f map[string]any) {
		at(t, f, "metadata").(map[string]any)["namespace"] = "cinder-csi"
	}, "has a namespace"},
	{"a namespace nobody makes", "PodDisruptionBudget", "", func(t *testing.T, f map[string]any) {
		at(t, f, "metadata").(map[string]any)["namespace"] = "elsewhere"
	}, "namespace elsewhere is neither"},
	{"an account nobody makes", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, pod...).(map[string]any)["serviceAccountName"] = "nobody"
	}, "no ServiceAccount nobody"},
	{"a Secret nobody is told of", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "volumes", 2, "projected", "sources", 0, "secret")...).(map[string]any)["name"] = "unheard"
	}, "Secret unheard"},
	{"a pull secret nobody is told of", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		at(t, f, pod...).(map[string]any)["imagePullSecrets"] = []any{map[string]any{"name": "unheard"}}
	}, "Secret unheard"},
	{"a ConfigMap that is not there", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "volumes", 4, "configMap")...).(map[string]any)["name"] = "lost"
	}, "no ConfigMap lost"},
	{"a variable nothing gives", "ConfigMap", "cinder-csi-controller-settings", func(t *testing.T, f map[string]any) {
		delete(at(t, f, "data").(map[string]any), "CLUSTER_ID")
	}, "$(CLUSTER_ID) is used"},
	{"a reclaim policy that is none", "StorageClass", "standard", func(_ *testing.T, f map[string]any) {
		f["reclaimPolicy"] = "Deleet"
	}, `reclaimPolicy "Deleet"`},
	{"a binding mode that is none", "StorageClass", "standard", func(_ *testing.T, f map[string]any) {
		f["volumeBindingMode"] = "Later"
	}, `volumeBindingMode "Later"`},
	{"a placeholder", "StorageClass", "standard", func(t *testing.T, f map[string]any) {
		at(t, f, "metadata", "labels").(map[string]any)["x"] = "${NAMESPACE}"
	}, "${…}"},
	{"a private key", "ConfigMap", "cinder-csi-node-config", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["key.pem"] = "-----BEGIN RSA PRIVATE KEY-----"
	}, "holds a PRIVATE KEY"},
	{"a login", "ConfigMap", "cinder-csi-controller-settings", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["HTTPS_PROXY"] = "user:pw@proxy.example.com:3128"
	}, "holds a login before a host and port"},
	{"a login without a port", "ConfigMap", "cinder-csi-controller-settings", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["HTTPS_PROXY"] = "user:pw@proxy.example.com"
	}, "holds a login of a proxy"},
	{"a login in a variable", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0)...).(map[string]any)["env"] = []any{map[string]any{"name": "ALL_PROXY", "value": "user:pw@proxy"}}
	}, "env[0].value: holds a login of a proxy"},
	{"a password", "ConfigMap", "cinder-csi-controller-config", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["cloud.conf"] = "[Global]\npassword = x\n"
	}, "password is a secret"},
	{"an unknown key of cloud.conf", "ConfigMap", "cinder-csi-controller-config", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["cloud.conf"] = "[Global]\nauth-ur = x\n"
	}, "auth-ur"},
	{"a cloud.conf that is none", "ConfigMap", "cinder-csi-controller-config", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["cloud.conf"] = "[Global\n"
	}, "cloud.conf: "},
	{"credentials for nodes", "ConfigMap", "cinder-csi-node-config", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["cloud.conf"] = "[Global]\nuse-clouds = true\n"
	}, "nodes hold no credentials"},
	{"a class parameter the driver does not know", "StorageClass", "standard", func(t *testing.T, f map[string]any) {
		at(t, f, "parameters").(map[string]any)["volume_type"] = "x"
	}, "parameter volume_type"},
	{"a class parameter the driver cannot read", "StorageClass", "standard", func(t *testing.T, f map[string]any) {
		at(t, f, "parameters").(map[string]any)["appendVolumeMetadata"] = "x"
	}, "appendVolumeMetadata"},
	{"a class of another driver", "StorageClass", "standard", func(_ *testing.T, f map[string]any) {
		f["provisioner"] = "other"
	}, `driver "other"`},
	{"a second default class", "StorageClass", "fast-ssd-628b49", func(t *testing.T, f map[string]any) {
		at(t, f, "metadata", "annotations").(map[string]any)["storageclass.kubernetes.io/is-default-class"] = "true"
	}, "more than one default StorageClass"},
	{"zones nodes are not labelled with", "StorageClass", "fast-ssd-628b49", func(t *testing.T, f map[string]any) {
		at(t, f, "allowedTopologies", 0, "matchLabelExpressions", 0).(map[string]any)["key"] = "zone"
	}, "no node has label zone"},
	{"a snapshot class parameter the driver cannot read", "VolumeSnapshotClass", "", func(_ *testing.T, f map[string]any) {
		f["parameters"] = map[string]any{"force-create": "perhaps"}
	}, "force-create"},
	{"a snapshot class parameter the driver does not know", "VolumeSnapshotClass", "", func(_ *testing.T, f map[string]any) {
		f["parameters"] = map[string]any{"forced": "true"}
	}, "parameter forced"},
	{"a deletion policy there is not", "VolumeSnapshotClass", "", func(_ *testing.T, f map[string]any) {
		f["deletionPolicy"] = "Keep"
	}, "deletionPolicy"},
	{"a role that is not there", "RoleBinding", "cinder-csi-attacher-lease", func(t *testing.T, f map[string]any) {
		at(t, f, "roleRef").(map[string]any)["name"] = "lost"
	}, "no Role lost"},
	{"an account in another namespace", "ClusterRoleBinding", "cinder-csi-attacher", func(t *testing.T, f map[string]any) {
		at(t, f, "subjects", 0).(map[string]any)["namespace"] = "elsewhere"
	}, "no ServiceAccount elsewhere/"},
	{"pods that are not the workload's own", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		at(t, f, "spec", "template", "metadata", "labels").(map[string]any)["app"] = "x"
	}, "does not match the pods' own labels"},
	{"a budget for no pods", "PodDisruptionBudget", "", func(t *testing.T, f map[string]any) {
		at(t, f, "spec", "selector", "matchLabels").(map[string]any)["app"] = "x"
	}, "no pods of the bundle"},
	{"an image without registry", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0)...).(map[string]any)["image"] = "cinder-csi/controller-driver"
	}, "image"},
	{"an image without tag", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0)...).(map[string]any)["image"] = "registry.example:5000/driver"
	}, "image"},
	{"a mount without volume", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0, "volumeMounts", 0)...).(map[string]any)["name"] = "lost"
	}, "mounts volume lost"},
	{"a subPath", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0, "volumeMounts", 0)...).(map[string]any)["subPath"] = "x"
	}, "subPath"},
	{"a secret in the environment", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, append(pod, "containers", 0)...).(map[string]any)["env"] = []any{map[string]any{"name": "P", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}}}
	}, "can read a secret in the environment"},
	{"a network rule for every port", "NetworkPolicy", "", func(t *testing.T, f map[string]any) {
		delete(at(t, f, "spec", "egress", 2).(map[string]any), "ports")
	}, "egress[2]: names no port"},
	{"a network rule for a port that is missing", "NetworkPolicy", "", func(t *testing.T, f map[string]any) {
		delete(at(t, f, "spec", "egress", 0, "ports", 0).(map[string]any), "port")
	}, "egress[0]: a port is missing"},
	{"a port there is not", "NetworkPolicy", "", func(t *testing.T, f map[string]any) {
		at(t, f, "spec", "egress", 2, "ports", 0).(map[string]any)["port"] = 99999
	}, "99999 is no port"},
	{"a Secret that nobody names, in place of the token", "Deployment", "", func(t *testing.T, f map[string]any) {
		volumes := at(t, f, append(pod, "volumes")...).([]any)
		at(t, volumes[len(volumes)-1], "projected").(map[string]any)["sources"] = []any{map[string]any{"secret": map[string]any{"name": "another"}}}
	}, "Secret another is not named by the bundle's README"},
	{"a flag that the driver does not have", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "driver", "--with-capcity")
	}, "container driver: args: the driver has no flag --with-capcity; did you mean --with-capacity?"},
	{"a flag that a sidecar does not have", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "attacher", "--worker-treads=5")
	}, "container attacher: args: attacher v4.13.0 has no flag --worker-treads; did you mean --worker-threads?"},
	{"a flag that the registrar does not have", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "registrar", "--leader-election")
	}, "container registrar: args: registrar v2.18.0 has no flag --leader-election; remove it"},
	{"a flag of the driver that is given twice", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "driver", "--cluster=other")
	}, "container driver: args: --cluster is given twice; keep one"},
	{"a flag of a sidecar that is given twice", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "provisioner", "--timeout=4m")
	}, "container provisioner: args: --timeout is given twice; keep one"},
	{"a value that a flag of the driver does not take", "ConfigMap", "cinder-csi-controller-settings", func(t *testing.T, f map[string]any) {
		at(t, f, "data").(map[string]any)["LOG_LEVEL"] = "much"
	}, `container driver: args: the driver refuses them: invalid argument "much" for "-v, --v" flag`},
	{"a file system that the driver does not create, by flag", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "driver", "--default-fs-type=ntfs")
	}, `--default-fs-type "ntfs" is not one of ext2`},
	{"a file system that the driver does not create", "StorageClass", "standard", func(t *testing.T, f map[string]any) {
		at(t, f, "parameters").(map[string]any)["csi.storage.k8s.io/fstype"] = "ntfs"
	}, `parameters: the driver does not create file system "ntfs"; use ext2, ext3, ext4, xfs, btrfs`},
	{"an argument that is no flag", "Deployment", "", func(t *testing.T, f map[string]any) {
		addArg(t, f, "resizer", "5")
	}, `container resizer: args: "5" is not --FLAG or --FLAG=VALUE`},
	{"a container that the generator does not know", "Deployment", "", func(t *testing.T, f map[string]any) {
		container(t, f, "resizer")["name"] = "shrinker"
	}, "container shrinker: a bundle has no container of this name"},
	{"two containers that declare one port", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, container(t, f, "attacher"), "ports", 0).(map[string]any)["containerPort"] = 8081.0
	}, "container attacher: ports: Deployment cinder-csi/cinder-csi-controller container provisioner has port 8081 of the pod too"},
	{"two containers that listen on one port", "Deployment", "", func(t *testing.T, f map[string]any) {
		args := at(t, container(t, f, "resizer"), "args").([]any)
		args[slices.Index(args, any("--http-endpoint=:8083"))] = "--http-endpoint=:8082"
	}, "container resizer: args: Deployment cinder-csi/cinder-csi-controller container attacher listens on port 8082 of the pod too, so one of them cannot start"},
	{"two containers on one port of the host", "DaemonSet", "", func(t *testing.T, f map[string]any) {
		args := at(t, container(t, f, "registrar"), "args").([]any)
		args[slices.Index(args, any("--http-endpoint=$(REGISTRAR_ADDRESS)"))] = "--http-endpoint=127.0.0.1:29601"
	}, "container livenessprobe: args: DaemonSet cinder-csi-node/cinder-csi-node container registrar listens on port 29601 on the host's network too"},
	{"a Deployment on the host's network with a port of the DaemonSet", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, f, pod...).(map[string]any)["hostNetwork"] = true
		at(t, container(t, f, "driver"), "ports", 0).(map[string]any)["containerPort"] = 29602.0
	}, "container driver: ports: DaemonSet cinder-csi-node/cinder-csi-node container registrar has port 29602 on the host's network too"},
	{"a Deployment with a hostPort of the DaemonSet", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, container(t, f, "driver"), "ports", 0).(map[string]any)["hostPort"] = 29601.0
	}, "container driver: ports: DaemonSet cinder-csi-node/cinder-csi-node container driver has hostPort 29601 too"},
	{"a probe of a port that the container does not have", "Deployment", "", func(t *testing.T, f map[string]any) {
		at(t, container(t, f, "attacher"), "livenessProbe", "httpGet").(map[string]any)["port"] = "healthz"
	}, `container attacher: livenessProbe: the container has no port "healthz", only ["attacher"]`},
	{"a container without image", "Deployment", "", func(t *testing.T, f map[string]any) {
		spec := at(t, f, pod...).(map[string]any)
		spec["containers"] = append(spec["containers"].([]any), map[string]any{"name": "atacher", "resources": map[string]any{}})
	}, "container atacher: has no image"},
	{"a token for somebody else", "Deployment", "", func(t *testing.T, f map[string]any) {
		volumes := at(t, f, append(pod, "volumes")...).([]any)
		at(t, volumes[len(volumes)-1], "projected", "sources", 0, "serviceAccountToken").(map[string]any)["audience"] = "vault"
	}, "want the pod's token"},
}

func TestEveryDefectIsFound(t *testing.T) {
	r := decide(t, v1alpha1.Spec{NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true}}, inventory("az 1", "az2"), v1alpha1.Vanilla)
	good := build(t, r, v1alpha1.Kustomize)
	readme := string(render(t, r, v1alpha1.Kustomize)["README.md"])
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			objects := clone(t, good)
			spoilt := false
			for _, o := range objects {
				if o.Kind() == d.kind && (d.object == "" || o.Name() == d.object) {
					d.spoil(t, o.Fields)
					spoilt = true
					break
				}
			}
			if !spoilt {
				t.Fatalf("the bundle has no %s %s", d.kind, d.object)
			}
			var said []string
			for _, f := range verify.Check(objects, readme) {
				said = append(said, f.String())
			}
			if !strings.Contains(strings.Join(said, "\n"), d.want) {
				t.Errorf("want a finding with %q, got:\n%s", d.want, strings.Join(said, "\n"))
			}
		})
	}
}

func TestAnObjectTwiceIsFound(t *testing.T) {
	objects := build(t, decide(t, v1alpha1.Spec{}, inventory("nova"), v1alpha1.Vanilla), v1alpha1.Helm)
	readme := string(render(t, decide(t, v1alpha1.Spec{}, inventory("nova"), v1alpha1.Vanilla), v1alpha1.Helm)["README.md"])
	account := objects[slices.IndexFunc(objects, func(o verify.Object) bool { return o.Kind() == "ServiceAccount" })]
	if findings := verify.Check(append(objects, account), readme); len(findings) != 1 || !strings.Contains(findings[0].String(), "twice") {
		t.Errorf("want the one finding that an object is there twice, got %v", findings)
	}
}

func TestWhatDoesNotBuildIsAnError(t *testing.T) {
	r := decide(t, v1alpha1.Spec{}, inventory("nova"), v1alpha1.Vanilla)
	for name, c := range map[string]struct {
		format v1alpha1.Format
		spoil  func(tree map[string][]byte)
		want   string
	}{
		"a missing file":                        {v1alpha1.Kustomize, func(tree map[string][]byte) { delete(tree, "base/node.yaml") }, "node.yaml"},
		"an unknown field":                      {v1alpha1.Kustomize, func(tree map[string][]byte) { tree["kustomization.yaml"] = []byte("resourcez: []") }, "resourcez"},
		"no values":                             {v1alpha1.Helm, func(tree map[string][]byte) { delete(tree, "values.yaml") }, "values.yaml is missing"},
		"an unknown value":                      {v1alpha1.Helm, func(tree map[string][]byte) { tree["values.yaml"] = append(tree["values.yaml"], "replicas: 2\n"...) }, "replicas"},
		"a value of wrong type":                 {v1alpha1.Helm, func(tree map[string][]byte) { tree["values.yaml"] = append(tree["values.yaml"], "caBundle: 2\n"...) }, "caBundle"},
		"the plane of a target that has it not": {v1alpha1.Helm, func(tree map[string][]byte) { tree["values.yaml"] = append(tree["values.yaml"], "plane: guest\n"...) }, "one plane"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := render(t, r, c.format)
			c.spoil(tree)
			_, _, err := verify.Bundle(tree, r.Target, c.format)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
}
