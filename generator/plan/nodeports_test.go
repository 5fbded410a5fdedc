package plan

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestTheHostPortsOfTheNodesAreAmongThoseThatThePlatformOpens(t *testing.T) {
	for target, want := range map[v1alpha1.Target]int{v1alpha1.Vanilla: 29601, v1alpha1.Standalone: 9601, v1alpha1.HostedControlPlane: 9601} {
		for _, spec := range []string{"", "spec: {monitoring: {nodePorts: auto}}"} {
			if got := decide(t, cloudOf("fast"), spec, target).NodePorts; got.Value != want || got.Source != Default {
				t.Errorf("%s %q: want port %d by default, got %+v", target, spec, want, got)
			}
		}
	}
	if got := decide(t, cloudOf("fast"), "spec: {monitoring: {nodePorts: 9701}}", v1alpha1.Vanilla).NodePorts; got.Value != 9701 || got.Source != FromConfig {
		t.Errorf("want the configured port 9701, got %+v", got)
	}
}

func TestHostPortsThatCannotBeAreRefused(t *testing.T) {
	for _, port := range []string{"1023", "65534", "0", "soon", "09601"} {
		if got, want := refusal(t, cloudOf("fast"), `spec: {monitoring: {nodePorts: "`+port+`"}}`, v1alpha1.Vanilla), "spec.monitoring.nodePorts: \""+port+"\" is neither auto nor a port"; !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", port, want, got)
		}
	}
	for _, port := range []string{"1024", "65533"} {
		decide(t, cloudOf("fast"), "spec: {monitoring: {nodePorts: "+port+"}}", v1alpha1.Vanilla)
	}
}

func TestHostPortsThatOthersUseAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		target  v1alpha1.Target
		spec    string
		warning string // empty: none about ports
	}{
		{v1alpha1.Vanilla, "{nodePorts: 29998}", "spec.monitoring.nodePorts: 29998 to 30000 are among the ports"},
		{v1alpha1.Vanilla, "{nodePorts: 60999}", "60999 to 61001 are among"},
		{v1alpha1.Vanilla, "{nodePorts: 29997}", ""},
		{v1alpha1.Vanilla, "{nodePorts: 61000}", ""},
		{v1alpha1.Standalone, "{kind: PodMonitor, nodePorts: 9998}", "opens the ports 9000 to 9999 between nodes, and 9998 to 10000 are others"},
		{v1alpha1.Standalone, "{kind: PodMonitor, nodePorts: 8999}", "opens port 9001"},
		{v1alpha1.Standalone, "{kind: PodMonitor, nodePorts: 9000}", ""},
		{v1alpha1.Standalone, "{nodePorts: 8000}", ""}, // nobody reads the metrics
	} {
		warnings := strings.Join(decide(t, cloudOf("fast"), "spec: {monitoring: "+c.spec+"}", c.target).Warnings, "\n")
		if c.warning == "" && strings.Contains(warnings, "nodePorts") || !strings.Contains(warnings, c.warning) {
			t.Errorf("%s %s: want a warning with %q, got %s", c.target, c.spec, c.warning, warnings)
		}
	}
}

func TestNodesOfAnotherSystemAreRefused(t *testing.T) {
	for _, role := range []string{"controller", "node"} {
		got := refusal(t, cloudOf("fast"), "spec: {roles: {"+role+": {nodeSelector: {kubernetes.io/os: windows}}}}", v1alpha1.Vanilla)
		if want := "spec.roles." + role + `.nodeSelector.kubernetes.io/os: "windows"; the pods run on Linux only`; !strings.Contains(got, want) {
			t.Errorf("want %q, got %s", want, got)
		}
		decide(t, cloudOf("fast"), "spec: {roles: {"+role+": {nodeSelector: {kubernetes.io/os: linux}}}}", v1alpha1.Vanilla)
	}
}
