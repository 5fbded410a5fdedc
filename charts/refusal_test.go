package charts_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

func TestTheChartRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"a NetworkPolicy without ports, which would allow all traffic out": {
			"networkPolicy: {enabled: true}", "at '/networkPolicy/ports': minItems: got 0, want 1",
		},
		"a NetworkPolicy that keeps Prometheus from the metrics": {
			"networkPolicy: {enabled: true, ports: [5000]}\nmonitoring: {kind: PodMonitor}", "networkPolicy.metricsNamespaces is empty",
		},
		"a provisioner without a flag that the chart sets": {
			"images: {controller: {provisioner: {tag: v6.2.1}}}", "images.controller.provisioner.tag: csi-provisioner v6.2.1 has no flag --snapshot-orphan-sweep-interval",
		},
		"a drain that outlasts the 30 seconds of kubelet": {"driver: {drainTimeout: 26s}", "at '/driver/drainTimeout'"},
		"a drain of minutes":                              {"driver: {drainTimeout: 1m}", "at '/driver/drainTimeout'"},
		"a size that does not exist":                      {"size: huge", "at '/size': value must be one of 'small', 'medium', 'large'"},
		"values of another version of the chart": {
			"chartVersion: 0.0.9", "at '/chartVersion': value must be '" + chartVersion() + "'",
		},
		"values of upstream's chart": {
			"csi: {plugin: {image: {tag: v1.36.0}}}", "csi.plugin.image: images.controller.driver, images.node.driver",
		},
		"a key of a later version of the chart": {
			"chartVersion: 9.0.0\ndriver: {later: true}", "at '/chartVersion': value must be '" + chartVersion() + "'",
		},
		"an unknown key inside of a Kubernetes type": {
			"controller: {affinity: {nodeAfinity: {}}}", "at '/controller/affinity': additional properties 'nodeAfinity' not allowed",
		},
		"an unknown container": {
			"node: {extraArgs: {provisioner: [--a=b]}}", "at '/node/extraArgs': additional properties 'provisioner' not allowed",
		},
		"an argument that is no flag": {
			"node: {extraArgs: {driver: [a b]}}", "at '/node/extraArgs/driver/0'",
		},
		"the label that selects the pods": {
			"controller: {podLabels: {app: mine}}", "at '/controller/podLabels/app': false schema",
		},
		"a driver name that gives the names of the default": {
			"driver: {name: cinder-csi}", "driver.name cinder-csi would give objects of the whole cluster the names",
		},
		"labels of monitors that the chart sets itself": {
			"monitoring: {labels: {app.kubernetes.io/component: mine}}", "at '/monitoring/labels/app.kubernetes.io~1component': false schema",
		},
		"labels of monitors that are none": {
			"monitoring: {labels: {release: a b}}", "at '/monitoring/labels/release'",
		},
		"nodes that are not Linux": {
			"node: {nodeSelector: {kubernetes.io/os: windows}}", "at '/node/nodeSelector/kubernetes.io~1os': value must be 'linux'",
		},
		"labels that the chart sets itself": {
			"commonLabels: {app.kubernetes.io/name: mine}", "at '/commonLabels/app.kubernetes.io~1name': false schema",
		},
		"the annotation that replaces pods after a change": {
			"node: {podAnnotations: {cinder-csi.io/config-hash: mine}}", "at '/node/podAnnotations/cinder-csi.io~1config-hash': false schema",
		},
		"a node pool of two labels, whose nodes cannot be left out": {
			"nodePools: [{name: a, nodeSelector: {a: b, c: d}}]", "at '/nodePools/0/nodeSelector': maxProperties: got 2, want 1",
		},
		"node pools of different labels, which one node may have": {
			"nodePools: [{name: a, nodeSelector: {a: b}}, {name: c, nodeSelector: {c: d}}]", "nodePools: a and c are labels of pools",
		},
		"node pools of the same nodes": {
			"nodePools: [{name: a, nodeSelector: {a: b}}, {name: c, nodeSelector: {a: b}}]", "nodePools: two pools have the label a=b",
		},
		"node pools of one name": {
			"nodePools: [{name: a, nodeSelector: {a: b}}, {name: a, nodeSelector: {a: c}}]", "nodePools: two pools have the name a",
		},
		"spread constraints that select no pods": {
			"controller: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}", "missing property 'labelSelector'",
		},
		"an additional object without a kind": {
			"extraObjects: [{apiVersion: v1, metadata: {name: a}}]", "at '/extraObjects/0': missing property 'kind'",
		},
		"two default snapshot classes, with which Kubernetes refuses snapshots": {
			"snapshots: {extraClasses: [{name: b, deletionPolicy: Delete, default: true}]}", "snapshots: cinder-csi, b are default classes of one driver",
		},
		"two default StorageClasses, of which Kubernetes takes the newest": {
			"storageClasses: [{name: a, default: true, reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true}, {name: b, default: true, reclaimPolicy: Delete, volumeBindingMode: Immediate, allowVolumeExpansion: true}]", "storageClasses: a, b are default classes",
		},
		"alerts on metrics that Prometheus does not read": {
			"monitoring: {alerts: true}", "at '/monitoring/alerts': value must be false",
		},
		"a target without its planes": {
			"target: hypershift", "target hypershift has the planes management and guest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, parse(t, c.values))
			if err == nil {
				t.Fatal("the chart accepts it")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cinder-csi") {
				t.Errorf("want the chart and %q in the message, got: %v", c.want, err)
			}
		})
	}
}

// Helm gives the globals of an umbrella chart to each of its charts, so they may be those of another chart.
func TestTheChartTakesTheGlobalsOfAnUmbrellaChart(t *testing.T) {
	with := objects(t, parse(t, "global: {imageRegistry: mirror.example, storageClass: fast, imagePullSecrets: [pull]}"))
	if diff := changed(objects(t, nil), with); len(diff) != 0 {
		t.Errorf("globals change %v", diff)
	}
}

// The name of a registry that nobody owns would be an invitation: who registers it runs as root on every node.
func TestTheChartHasNoDefaultRegistryForTheImagesOfThisProject(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"the defaults":              {"", "the image cinder-csi/cinder-csi-driver by default: build or mirror it"},
		"one role alone":            {"images: {controller: {driver: {registry: a.example}}}", "images.node.driver"},
		"a tag":                     {"images: {controller: {driver: {tag: v9}}, node: {driver: {tag: v9}}}", "images.controller.driver"},
		"the drift check":           {"images: {controller: {driver: {registry: a.example}}, node: {driver: {registry: a.example}}}\n" + aDriftCheck, "the image cinder-csi/cinder-csi-generator by default"},
		"both roles":                {"images: {controller: {driver: {registry: a.example}}, node: {driver: {registry: a.example}}}", ""},
		"a mirror":                  {"images: {registry: mirror.example}\n" + aDriftCheck, ""},
		"the guest's half, by role": {"target: hypershift\nplane: guest\nimages: {node: {driver: {registry: a.example}}}", ""},
	} {
		_, err := renderOnly(t, anyRelease, parse(t, c.values), false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
}

// Helm has a flag that skips the schema.
func TestTheChartRefusesWithoutItsSchemaToo(t *testing.T) {
	for values, want := range map[string]string{
		"networkPolicy: {enabled: true}": "networkPolicy.enabled needs networkPolicy.ports",
		"chartVersion: 0.0.9":            "the values are for chart cinder-csi 0.0.9, and this is version " + chartVersion(),
	} {
		if _, err := renderFor(t, anyRelease, parse(t, values), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", values, want, err)
		}
	}
}

// chartVersion is that of the chart in this tree.
func chartVersion() string {
	text, err := os.ReadFile("cinder-csi/Chart.yaml")
	if err != nil {
		return err.Error()
	}
	_, after, _ := strings.Cut(string(text), "\nversion: ")
	version, _, _ := strings.Cut(after, "\n")
	return version
}

// The chart has the list of plan, since it is installed by itself too.
func TestTheChartRefusesASidecarWithoutAFlagThatItSets(t *testing.T) {
	for _, s := range plan.SidecarReleases {
		for _, role := range []string{"controller", "node"} {
			if (s.Image == "registrar") != (role == "node") && s.Image != "livenessprobe" {
				continue
			}
			values := fmt.Sprintf("images: {%s: {%s: {tag: %s}}}", role, s.Image, s.Release)
			if _, err := render(t, parse(t, values)); err != nil {
				t.Errorf("%s: %v", values, err)
			}
			major, minor, _ := strings.Cut(strings.TrimPrefix(s.Release, "v"), ".")
			minor, _, _ = strings.Cut(minor, ".")
			n, err := strconv.Atoi(minor)
			if err != nil {
				t.Fatal(err)
			}
			values = fmt.Sprintf("images: {%s: {%s: {tag: v%s.%d.9}}}", role, s.Image, major, n-1)
			want := fmt.Sprintf("images.%s.%s.tag: %s v%s.%d.9 has no flag %s, which the chart sets, and ends at once: name %s or later", role, s.Image, s.Program, major, n-1, s.Flag, s.Release)
			if _, err := render(t, parse(t, values)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		}
	}
}

// The chart refuses by itself what the generator refuses of OpenShift's admission, on each target and plane.
func TestTheChartRefusesWhatOpenShiftWouldRefuse(t *testing.T) {
	for _, namespace := range append(slices.Clone(plan.Unconstrained), "storage", "openshift-storage") {
		for target, refused := range map[string]bool{"target: vanilla": false, "target: standalone": true, "target: hypershift\nplane: guest": true, "target: hypershift\nplane: management": true} {
			for _, role := range []string{"controller", "node"} {
				_, err := render(t, parse(t, fmt.Sprintf("%s\nnamespaces: {%s: %s}", target, role, namespace)))
				if want := refused && slices.Contains(plan.Unconstrained, namespace); want != (err != nil) || want && !strings.Contains(err.Error(), "namespaces."+role+": OpenShift applies no security context constraint in "+namespace) {
					t.Errorf("%s, namespaces.%s %s: want a refusal %t, got %v", target, role, namespace, want, err)
				}
			}
		}
	}
	for values, want := range map[string]bool{
		"target: standalone\ncontroller: {runAsUser: 1000680000}": true, "target: standalone\ncontroller: {runAsUser: auto}": false, "target: standalone\ncontroller: {runAsUser: null}": false,
		"target: hypershift\nplane: management\ncontroller: {runAsUser: 7}": false, "controller: {runAsUser: 7}": false,
	} {
		if _, err := render(t, parse(t, values)); want != (err != nil) || want && !strings.Contains(err.Error(), "controller.runAsUser: OpenShift chooses the user") {
			t.Errorf("%s: want a refusal %t, got %v", values, want, err)
		}
	}
}
