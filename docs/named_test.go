package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	namedMetric = regexp.MustCompile(`\b(cinder_csi_[a-z_]*[a-z])(?:\{([^}]*)\})?`)
	namedKey    = regexp.MustCompile("`(spec(?:\\.[a-zA-Z]+)+)(?:: [^`]*)?`")
	ofKubespray = []string{"cinder_csi_enabled", "cinder_csi_ignore_volume_az"} // its variables
	suffixes    = []string{"_total", "_bucket", "_sum", "_count"}
)

// TestEveryMetricThatAPageNamesIsThere: a metric that has another name, or another label, misleads the one who writes a query.
func TestEveryMetricThatAPageNamesIsThere(t *testing.T) {
	labels := map[string][]string{}
	for _, f := range telemetry.Families() {
		labels[f.Name] = f.Labels
	}
	seen := 0
	for _, page := range pages(t) {
		for _, found := range namedMetric.FindAllStringSubmatch(testfile.Text(t, page), -1) {
			name := found[1]
			if _, known := labels[name]; !known {
				for _, suffix := range suffixes {
					name = strings.TrimSuffix(name, suffix)
				}
			}
			has, known := labels[name]
			if seen++; !known && !slices.Contains(ofKubespray, found[1]) {
				t.Errorf("%s names the metric %s, which the driver does not have", page, found[1])
			}
			for label := range strings.SplitSeq(found[2], ",") {
				label = strings.TrimSpace(regexp.MustCompile(`[=~!].*`).ReplaceAllString(label, ""))
				if known && label != "" && !slices.Contains(append(slices.Clone(has), "namespace", "pod", "instance", "cluster"), label) {
					t.Errorf("%s names the label %s of %s, which has %q", page, label, name, has)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("want the metrics of the pages, found %d", seen)
	}
}

// foreignKeys are keys of objects of Kubernetes, OpenShift and HyperShift that pages name as they are written there.
var foreignKeys = []string{
	"spec.nodeName", "spec.volumeName", "spec.containers", "spec.taints", "spec.infraID", "spec.platform", "spec.claimRef", "spec.resources", "spec.source",
	"spec.attachers", "spec.providerID", "spec.unschedulable", "spec.storageClassName", "spec.volumeAttributesClassName", "spec.dataSource", "spec.csi",
	"spec.drivers", "spec.trustedCA", "spec.cinder", "spec.dependsOn", // a PersistentVolume of the in-tree driver, a Kustomization of Flux
	"spec.snapshotController", "spec.kubelet", "spec.containerd", // of kOps
	"spec.networking", "spec.volumeMode", "spec.template", "spec.services", "spec.selector", "spec.configuration",
}

// TestEveryKeyOfADistributionThatAPageNamesIsThere: a key that is gone is refused, and the reader does not know what took its place.
func TestEveryKeyOfADistributionThatAPageNamesIsThere(t *testing.T) {
	known := map[string]bool{}
	for _, k := range v1alpha1.Keys() {
		path := strings.ReplaceAll(strings.ReplaceAll(k.Path, "[]", ""), ".*", "")
		known[path] = true
		// A plane of the nodes has the keys of the controller, and a container the keys of another.
		known[strings.Replace(path, "roles.controller", "roles.node", 1)] = true
		if rest, is := strings.CutPrefix(path, "spec.images.driver"); is {
			for _, image := range []string{"provisioner", "attacher", "resizer", "snapshotter", "livenessprobe", "registrar", "rbacproxy", "generator"} {
				known["spec.images."+image+rest] = true
			}
		}
	}
	seen := 0
	for _, page := range pages(t) {
		if strings.HasSuffix(page, "KEYS.md") || strings.HasSuffix(page, "OPENSHIFT.md") { // keys of the objects that they compare
			continue
		}
		for _, found := range namedKey.FindAllStringSubmatch(testfile.Text(t, page), -1) {
			key := found[1]
			foreign := slices.ContainsFunc(foreignKeys, func(f string) bool { return key == f || strings.HasPrefix(key, f+".") })
			if seen++; !known[key] && !foreign && !prefixOf(known, key) {
				t.Errorf("%s names the key %s, which a Distribution does not have", page, key)
			}
		}
	}
	if seen < 60 {
		t.Errorf("want the keys of the pages, found %d", seen)
	}
}

// prefixOf says whether a key is one of a container, of a class or of what Kubernetes defines: below a key that takes any name.
func prefixOf(known map[string]bool, key string) bool {
	for _, open := range []string{"spec.storageClasses.overrides", "spec.snapshots.classes", "spec.attributesClasses", "spec.topology.zoneMap", "spec.roles.controller.resources", "spec.roles.node.resources", "spec.roles.controller.images", "spec.roles.node.images", "spec.driver.volumeMetadata", "spec.driver.serverMetadata"} {
		if strings.HasPrefix(key, open+".") && known[open] {
			return true
		}
	}
	return false
}
