package migrate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// isValues recognises values by what only this chart has: many charts have a nameOverride. An object of Kubernetes has a kind.
func isValues(d document) bool {
	if d.carried {
		return true
	}
	if d.yaml == nil || d.yaml["kind"] != nil {
		return false
	}
	if others := slices.DeleteFunc(slices.Collect(maps.Keys(d.yaml)), isChartKey); 2*len(others) > len(d.yaml) { // charts of other drivers have a clusterID too
		return false
	}
	return d.yaml["clusterID"] != nil || d.yaml["logVerbosityLevel"] != nil || slices.ContainsFunc([]string{"csi", "secret", "storageClass"}, func(key string) bool {
		fields, isMap := d.yaml[key].(map[string]any)
		return key == "csi" && d.yaml[key] != nil && !isMap || slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(below string) bool { return hasRow(key + "." + below) })
	})
}

// isChartKey reports whether the chart has a key at its top.
func isChartKey(key string) bool { return key == "global" || holdsAnchors(key) || hasRow(key) }

// holdsAnchors reports whether a key at the top is there for the anchors of YAML, as in other files of people.
func holdsAnchors(key string) bool { return strings.HasPrefix(key, "x-") }

// hasRow reports whether a key or one below it has a row.
func hasRow(key string) bool {
	return slices.ContainsFunc(rowsOfChart, func(row string) bool { return row == key || strings.HasPrefix(row, key+".") })
}

// rowsOfChart are the keys of chartRules. A rule reads a text that is in a file, which asks for the rows again, so init sets them.
var rowsOfChart []string

func init() {
	for _, r := range chartRules {
		rowsOfChart = append(rowsOfChart, r.key)
	}
}

// chartClusterID is the default of clusterID in upstream's chart.
const chartClusterID = "kubernetes"

func (p *proposal) readValues(d document) error {
	if d.elsewhere != "" {
		p.note("the values", "", d.elsewhere)
	}
	if d.partly {
		return p.walk(chartRules, "", d.yaml, leftoverOfValues)
	}
	if !p.known.clusterID && d.yaml["clusterID"] == nil {
		p.Spec.ClusterID = chartClusterID
		p.note("clusterID", "spec.clusterID", "it is not in the file, and the default of the chart is "+chartClusterID)
	}
	switch _, given := provisionerTopology(d); {
	case given:
	case p.known.withoutZones:
		p.Spec.Topology.Mode = v1alpha1.Disabled
		p.note("csi.provisioner.topology", "spec.topology.mode", "it is not in the file, and something else turns topology off")
	default:
		p.Spec.Topology.Mode = v1alpha1.Enabled
		p.note("csi.provisioner.topology", "spec.topology.mode", "it is not in the file, and the default of the chart is true: "+zonesStay)
	}
	return p.walk(chartRules, "", d.yaml, leftoverOfValues)
}

// provisionerTopology is whether upstream's provisioner passes zones, as values say.
func provisionerTopology(d document) (any, bool) {
	topology := valueAt(d.yaml, "csi", "provisioner", "topology")
	return topology, topology != nil && topology != ""
}

func leftoverOfValues(path string) string {
	if holdsAnchors(path) {
		return "no chart has a key of this form; the keys with its anchors have their own lines"
	}
	return "import does not know this key: openstack-cinder-csi 2.36.0 has none of this name" + plan.DidYouMean(path, rowsOfChart)
}

func (p *proposal) applyValue(r rule, path string, v value) error {
	switch common, is := chartDefaults[path]; {
	case v.empty():
		p.note(path, "", "it is empty")
		return nil
	case p.document.kind() == "" && path != "secret.data" && path != "storageClass.custom" && holdsTemplate(v.any): // an object is rendered; a container beside the driver may have a template of its own
		if path == "clusterID" && !p.known.clusterID {
			return p.problem("%s: it is a template, and existing volumes are found by it; %s", path, giveClusterID)
		}
		p.note(path, "", isTemplate)
		return nil
	case is && p.document.kind() == "" && reflect.DeepEqual(jsonValue(v.any), jsonValue(common)):
		p.note(path, "", "it is the default of upstream's chart, and the bundle has its own")
		return nil
	case holds(v.any, "ENC[", "$ANSIBLE_VAULT;"): // of SOPS or Ansible
		return p.problem("%s: the value is encrypted; decrypt the file first", path)
	}
	return p.apply(r, path, v)
}

// chartDefaults are defaults of upstream's chart that nobody chose: people copy the whole values.yaml. They hold for openstack-cinder-csi 1.1.2 to
// 2.36.0, each since the release that brought its key.
var chartDefaults = func() map[string]any {
	defaults := map[string]any{
		"csi.plugin.controllerPlugin.replicas":                              1,
		"csi.plugin.controllerPlugin.strategy.type":                         "RollingUpdate",
		"csi.plugin.controllerPlugin.strategy.rollingUpdate.maxUnavailable": 0,
		"csi.plugin.controllerPlugin.strategy.rollingUpdate.maxSurge":       1,
		"csi.plugin.nodePlugin.kubeletDir":                                  usualKubeletDir,
		"csi.plugin.nodePlugin.tolerations":                                 []any{map[string]any{"operator": "Exists"}},
		"csi.plugin.image.pullPolicy":                                       "IfNotPresent",
		"logVerbosityLevel":                                                 2,
		"pvcAnnotations":                                                    false,
	}
	for _, sidecar := range []string{"attacher", "provisioner", "snapshotter", "resizer", "livenessprobe", "nodeDriverRegistrar"} {
		defaults["csi."+sidecar+".image.pullPolicy"] = "IfNotPresent"
	}
	return defaults
}()

// jsonValue is a value as JSON has it: numbers of files and of this table are of other types.
func jsonValue(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return v
	}
	return plain
}

const isTemplate = "it is a template; write what it renders into the Distribution"

// holdsTemplate reports whether a text is there for another program to fill in.
func holdsTemplate(v any) bool {
	return holds(v, "{{", "{%", "${", "<path:") || anyBelow(v, isReference)
}

// isReference reports whether a text names a place in a vault.
func isReference(v any) bool {
	text, _ := v.(string)
	return strings.HasPrefix(text, "ref+")
}

func holds(v any, words ...string) bool {
	return anyBelow(v, func(v any) bool {
		text, _ := v.(string)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	})
}

// chartRules has a row for each key of upstream's values.yaml. A row for a map stands for all below it.
var chartRules = slices.Concat(
	sidecarRules("attacher", "attacher", controllerPods),
	sidecarRules("provisioner", "provisioner", controllerPods),
	sidecarRules("snapshotter", "snapshotter", controllerPods),
	sidecarRules("resizer", "resizer", controllerPods),
	sidecarRules("livenessprobe", "livenessprobe", bothPods),
	sidecarRules("nodeDriverRegistrar", "registrar", nodePods),
	podRules("csi.plugin.controllerPlugin.", controllerPods),
	podRules("csi.plugin.nodePlugin.", nodePods),
	[]rule{
		{key: "extraLabels", why: "the objects of a bundle have fixed labels; add yours with a Kustomize layer over the bundle"},
		{key: "nameOverride", why: "the objects of a bundle have fixed names"},
		{key: "fullnameOverride", why: "the objects of a bundle have fixed names"},
		{key: "serviceAccount.create", why: "the bundle brings its ServiceAccounts"},
		{key: "serviceAccount.name", why: "the objects of a bundle have fixed names"},
		{key: "timeout", why: "the sidecars of a bundle wait for 3 minutes"},
		{key: "csi.provisioner.topology", to: "spec.topology.mode", set: setTopology},
		{key: "csi.snapshotter.extraRbac", why: "no sidecar of a bundle may read Secrets, because a bundle serves one cloud"},
		{key: "csi.resizer.extraRbac", why: "no sidecar of a bundle may read Secrets, because a bundle serves one cloud"},
		{key: "csi.snapshotController", why: "the bundle brings no snapshot controller; install one, and doctor checks it"},
		{key: "csi.livenessprobe.failureThreshold", why: "the probes of a bundle have fixed times"},
		{key: "csi.livenessprobe.initialDelaySeconds", why: "the probes of a bundle have fixed times"},
		{key: "csi.livenessprobe.timeoutSeconds", why: "the probes of a bundle have fixed times"},
		{key: "csi.livenessprobe.periodSeconds", why: "the probes of a bundle have fixed times"},
		{key: "csi.plugin.image.repository", why: "it is the image of upstream's plugin; name that of this driver in spec.images.driver (" + pages.BuildTheImage.String() + ")"},
		{key: "csi.plugin.image.tag", why: "it is the image of upstream's plugin"},
		{key: "csi.plugin.image.pullPolicy", to: "spec.images.driver.pullPolicy", set: func(p *proposal, v value) error { return v.into(&p.Spec.Images.Driver.PullPolicy) }},
		{key: "csi.plugin.volumes", why: "the bundle mounts what the driver needs; for a CA put its PEM into spec.credentials.caBundle"},
		{key: "csi.plugin.volumeMounts", why: "the bundle mounts what the driver needs; for a CA put its PEM into spec.credentials.caBundle"},
		{key: "csi.plugin.resources", to: "spec.roles.*.resources.driver", set: setResources("driver", bothPods)},
		{key: "csi.plugin.httpEndpoint.enabled", why: "the controller of a bundle always serves metrics"},
		{key: "csi.plugin.httpEndpoint.port", why: "the port of the metrics is fixed"},
		{key: "csi.plugin.podMonitor.enabled", to: "spec.monitoring.kind", set: setPodMonitor},
		{key: "csi.plugin.podMonitor.additionalLabels", why: "add them with a Kustomize layer over the bundle"},
		{key: "csi.plugin.extraArgs", to: "spec.driver.extraArgs", set: setExtraArgs(bothPods)},
		{key: "csi.plugin.extraEnv", to: envOrProxy, set: setEnv(bothPods)},
		{key: "logVerbosityLevel", to: "spec.driver.logLevel", set: setLogLevel},
		{key: "secret.enabled", why: "the bundle always mounts a Secret, with clouds.yaml; " + secretInReadme, credential: true},
		{key: "secret.hostMount", why: "the bundle mounts a Secret and no file of the host; " + secretInReadme, credential: true},
		{key: "secret.create", why: "the generator never sees a secret; a person creates it; " + secretInReadme, credential: true},
		{key: "secret.filename", why: "the driver reads clouds.yaml, not cloud.conf"},
		{key: "secret.name", why: "that Secret holds cloud.conf; the bundle needs one with clouds.yaml, whose name spec.credentials.secretName can set"},
		{key: "secret.data", to: "the Distribution, as far as it is no credential", set: setSecretData},
		{key: "storageClass.enabled", why: "the classes csi-cinder-sc-delete and csi-cinder-sc-retain stay in the cluster as they are; the bundle makes a class for each volume type"},
		{key: "storageClass.delete.isDefault", to: "spec.storageClasses.default", why: "your default class stays the only one", set: keepDefault},
		{key: "storageClass.retain.isDefault", to: "spec.storageClasses.default", why: "your default class stays the only one", set: keepDefault},
		{key: "storageClass.delete.allowVolumeExpansion", why: "the class stays in the cluster as it is"},
		{key: "storageClass.retain.allowVolumeExpansion", why: "the class stays in the cluster as it is"},
		{key: "storageClass.custom", to: "spec.storageClasses", why: "these classes stay in the cluster as they are", set: setCustomClasses},
		{key: "clusterID", to: "spec.clusterID", set: func(p *proposal, v value) (err error) { p.Spec.ClusterID, err = v.text(); return err }},
		{key: "pvcAnnotations", to: "spec.driver.pvcAnnotations", set: setPVCAnnotations},
		{key: "priorityClassName", to: "spec.roles.*.priorityClassName", set: eachRole(bothPods, func(pl *v1alpha1.RolePods) any { return &pl.PriorityClassName })},
		{key: "imagePullSecrets", to: "spec.roles.*.imagePullSecrets", set: setPullSecrets(bothPods)},
		{key: "commonAnnotations", to: "spec.roles.*.podAnnotations", why: "of pods only, not of the other objects", set: setOwnMap(bothPods, annotations, nil)},
	},
)

func sidecarRules(inChart, name string, pods pods) []rule {
	at := "csi." + inChart + "."
	return []rule{
		{key: at + "image.repository", to: "spec.images." + name, set: setRepository(name)},
		{key: at + "image.tag", why: "the bundle names the version that this driver was tested with"},
		{key: at + "image.pullPolicy", to: "spec.images." + name + ".pullPolicy", set: func(p *proposal, v value) error { return v.into(&imageOf(p, name).PullPolicy) }},
		{key: at + "resources", to: "spec.roles.*.resources." + name, set: setResources(name, pods)},
		{key: at + "extraArgs", why: "a bundle has fixed flags for the sidecars; change them with a Kustomize layer over the bundle"},
		{key: at + "extraEnv", why: "spec.roles.*.env sets variables for every container of a pod"},
	}
}

func podRules(at string, pods pods) []rule {
	to := "spec.roles." + pods.name + "."
	rules := []rule{
		{key: at + "podAnnotations", to: to + "podAnnotations", set: setOwnMap(pods, annotations, nil)},
		{key: at + "podLabels", to: to + "podLabels", set: setOwnMap(pods, labels, nil)},
		{key: at + "podSecurityContext", why: "the pods of a bundle have the least rights that work; spec.roles.controller.runAsUser sets the user of the controller"},
		{key: at + "securityContext", why: "the containers of a bundle have the least rights that work"},
		{key: at + "affinity", to: to + "affinity", set: setAffinity(pods)},
		{key: at + "nodeSelector", to: to + "nodeSelector", set: eachRole(pods, func(pl *v1alpha1.RolePods) any { return &pl.NodeSelector })},
		{key: at + "tolerations", to: to + "tolerations", set: eachRole(pods, func(pl *v1alpha1.RolePods) any { return &pl.Tolerations })},
		{key: at + "extraArgs", to: "spec.driver.extraArgs." + pods.name, set: setExtraArgs(pods)},
		{key: at + "hostAliases", why: "no bundle sets it; add it with a Kustomize layer over the bundle, or give the cloud a name in DNS"},
	}
	if pods.name == nodePods.name {
		return append(rules,
			rule{key: at + "dnsPolicy", why: "the node pods call no service by name"},
			rule{key: at + "kubeletDir", to: "spec.driver.kubeletDir", set: setKubeletDir})
	}
	return append(rules,
		rule{key: at + "replicas", to: to + "replicas", set: setReplicas},
		rule{key: at + "strategy.type", to: to + "updateStrategy.type", set: func(p *proposal, v value) error { return v.into(&p.Spec.Roles.Controller.UpdateStrategy.Type) }},
		rule{key: at + "strategy.rollingUpdate.maxUnavailable", to: to + "updateStrategy.rollingUpdate.maxUnavailable", set: setRollingUpdate(func(r *v1alpha1.RollingUpdate) any { return &r.MaxUnavailable })},
		rule{key: at + "strategy.rollingUpdate.maxSurge", to: to + "updateStrategy.rollingUpdate.maxSurge", set: setRollingUpdate(func(r *v1alpha1.RollingUpdate) any { return &r.MaxSurge })})
}

// setRollingUpdate takes a number of pods, unless the strategy is another one: Kubernetes refuses it then.
func setRollingUpdate(field func(*v1alpha1.RollingUpdate) any) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		if kind := p.document.text("csi", "plugin", "controllerPlugin", "strategy", "type"); kind != "" && kind != "RollingUpdate" {
			return leave("the strategy is another one")
		}
		return v.into(field(&p.Spec.Roles.Controller.UpdateStrategy.RollingUpdate))
	}
}
