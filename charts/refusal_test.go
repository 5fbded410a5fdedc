package charts_test

import (
	"strings"
	"testing"
)

func TestTheChartRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"a NetworkPolicy without ports, which would allow all traffic out": {
			"networkPolicy: {enabled: true}", "at '/networkPolicy/ports': minItems: got 0, want 1",
		},
		"a global registry, which this chart calls images.registry": {
			"global: {imageRegistry: mirror.example}", "at '/global': additional properties 'imageRegistry' not allowed",
		},
		"values of another version of the chart": {
			"chartVersion: 0.0.9", "at '/chartVersion': value must be '0.1.0'",
		},
		"values of upstream's chart": {
			"csi: {plugin: {image: {tag: v1.36.0}}}", "at '': additional properties 'csi' not allowed",
		},
		"a key of a later version of the chart": {
			"chartVersion: 9.0.0\ndriver: {later: true}", "at '/chartVersion': value must be '0.1.0'",
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
		"labels that the chart sets itself": {
			"commonLabels: {app.kubernetes.io/name: mine}", "at '/commonLabels/app.kubernetes.io~1name': false schema",
		},
		"the annotation that replaces pods after a change": {
			"node: {podAnnotations: {cinder-csi.io/config-hash: mine}}", "at '/node/podAnnotations/cinder-csi.io~1config-hash': false schema",
		},
		"a node pool of two labels, whose nodes cannot be left out": {
			"nodePools: [{name: a, nodeSelector: {a: b, c: d}}]", "at '/nodePools/0/nodeSelector': maxProperties: got 2, want 1",
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

// Helm has a flag that skips the schema.
func TestTheChartRefusesWithoutItsSchemaToo(t *testing.T) {
	for values, want := range map[string]string{
		"networkPolicy: {enabled: true}": "networkPolicy.enabled needs networkPolicy.ports",
		"chartVersion: 0.0.9":            "the values are for chart cinder-csi 0.0.9, and this is version 0.1.0",
	} {
		if _, err := renderFor(t, anyRelease, parse(t, values), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", values, want, err)
		}
	}
}
