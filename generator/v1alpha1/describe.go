package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
)

// about is what people want to know of a key of a Distribution.
type about struct {
	Meaning string
	// Default is what an absent key means; empty for a key that only holds others.
	Default string
	// Refused is what the generator takes for a mistake, besides a value of another kind; empty where nothing is.
	Refused string
}

// abouts are by type and JSON key, as enums are. This is the one place where keys are described: the JSON schema and the reference
// are made of it.
var abouts = map[string]about{
	"Distribution.apiVersion": {"The format of this document.", APIVersion, "any other; a newer one is an exit 1 that names it"},
	"Distribution.kind":       {"The kind of this document.", KindDistribution, "any other"},
	"Distribution.metadata":   {Meaning: "Names the configuration."},
	"Distribution.spec":       {Meaning: "What shall differ from the defaults."},
	"Metadata.name":           {"The cluster's name, of which other defaults are made.", "none", "on hypershift without namespaces.controller: one that makes no namespace's name"},

	"Spec.kubernetesVersion": {"The lowest minor version of Kubernetes that is served, with or without a patch. Decides which fields are emitted.", DefaultKubernetesVersion, "what is no version, or one before 1.27"},
	"Spec.namespaces":        {Meaning: "Where the two roles live."},
	"Namespaces.controller":  {"The controller's namespace; on hypershift the hosted control plane's, which HyperShift makes. A change is guarded.", "cinder-csi; on hypershift clusters- and metadata.name, with a warning", "what is no namespace's name"},
	"Namespaces.node":        {"The nodes' namespace; on hypershift in the guest, for the leases too. A change is guarded.", "cinder-csi-node; on hypershift cinder-csi", "what is no namespace's name"},
	"Spec.clusterID":         {"Marks this cluster's volumes in Cinder's metadata. A change is guarded.", "metadata.name; else on hypershift hypershift.infraID; else kubernetes, with a warning", "more than 255 characters"},

	"Spec.driver":           {Meaning: "The driver's identity and log."},
	"Driver.name":           {"The driver's name in the cluster. A change is guarded: volumes belong to the driver of their name.", "cinder.csi.openstack.org; on OpenShift side by side cinder-csi.io", "what is no driver name; on OpenShift the built-in driver's unless it is adopted, and any other if it is"},
	"Driver.logLevel":       {"How much driver and sidecars log, one of klog's levels.", "2", "less than 0, more than 10"},
	"Driver.pvcAnnotations": {"Whether the driver reads scheduler hints from the annotations of claims, as upstream's does. Its container then has the pod's token, and every right of the sidecars.", "true; on hypershift false", "true on hypershift, where the controller runs in another cluster than the claims"},
	"Spec.openshift":        {Meaning: "What holds on OpenShift only."},
	"OpenShift.coexistence": {"Whether the driver runs beside OpenShift's built-in one (sideBySide: own names, no default class) or takes its name over (adopt).", SideBySide, "adopt on a hosted cluster of platform OpenStack"},

	"Spec.credentials":       {Meaning: "Where the driver finds the cloud's credentials. The generator never sees them."},
	"Credentials.secretName": {"The Secret in the controller's namespace that a person creates.", "cinder-csi-credentials", "what is no Secret's name"},
	"Credentials.key":        {"The key of the Secret that holds a clouds.yaml.", DefaultCredentialsKey, "what is no key of a Secret"},
	"Credentials.cloud":      {"The entry in that clouds.yaml.", DefaultCloudEntry, ""},
	"Credentials.caBundle":   {"The CA certificates of OpenStack's endpoints, in PEM. They are public, and embedded in the bundle.", "none: the system's", "anything but certificates, comments too"},

	"Spec.topology":    {Meaning: "Whether volumes and nodes carry zones."},
	"Topology.mode":    {"auto enables topology if every compute zone has a volume zone of its name, after zoneMap. A change of the outcome is guarded.", Auto, ""},
	"Topology.zoneMap": {"Compute zone to the volume zone that serves it, where their names differ.", "none", "an empty name; two compute zones with one label and different volume zones"},

	"Spec.storageClasses":         {Meaning: "Which classes are emitted. One is made for each volume type that is included."},
	"StorageClasses.include":      {"Volume types that get a class: globs over their names, with * and ?.", `["*"]`, ""},
	"StorageClasses.exclude":      {"Volume types that get none; wins over include.", "none", ""},
	"StorageClasses.default":      {"The default class: auto is that of the cloud's default type, none is none, else a type's id or name.", "auto; on OpenShift side by side that is none", "a type that the cloud has not, or that gets no class"},
	"StorageClasses.namePrefix":   {"Begins the name of every class that is made of a type's name.", "none", "what makes no class name"},
	"StorageClasses.overrides":    {"What shall differ for single types, by a type's id or name.", "none", "a type that the cloud has not, or that is there under id and name"},
	"StorageClasses.extra":        {"Further classes, such as a second one that retains its volumes.", "none", "a name that another class has"},
	"ClassOverride.name":          {"The class's name.", "namePrefix and the type's name, or what can be kept of it and six digits; in extra it is required", "what is no class name"},
	"ClassOverride.reclaimPolicy": {"What becomes of a volume whose claim is deleted.", "Delete", ""},
	"ClassOverride.fsType":        {"The file system of new volumes.", "the driver's: ext4", "together with parameters' csi.storage.k8s.io/fstype"},
	"ClassOverride.mountOptions":  {"Options that volumes are mounted with, one an entry.", "none", "an entry that is empty or has white space"},
	"ClassOverride.parameters":    {"Further parameters of the class, for the driver.", "none", "a parameter that the driver does not know or cannot read; type in overrides"},
	"ClassOverride.annotations":   {"Annotations of the class.", "none", "what is no annotation's key; the generator's own, that of the default class among them"},
	"ExtraClass.type":             {"The volume type, by id or name.", "the cloud's default type", "a type that the cloud has not; together with parameters.type"},

	"Spec.volumeAttachLimit": {"How many volumes a node takes: auto lets each node compute its own, a number is emitted as given.", Auto, "less than 1, more than 256"},
	"Spec.snapshots":         {Meaning: "Volume snapshots. The snapshot CRDs and controller are a prerequisite."},
	"Snapshots.enabled":      {"Whether the snapshotter sidecar, its rights and a VolumeSnapshotClass are emitted.", "true", ""},
	"Spec.monitoring":        {Meaning: "Objects of the Prometheus operator."},
	"Monitoring.kind":        {"Which object tells Prometheus of the controller.", None, "any other: this version emits none"},
	"Spec.networkPolicy":     {Meaning: "What the controller's pods may reach, and what may reach them."},
	"NetworkPolicy.enabled":  {"Whether a NetworkPolicy is emitted; its ports are those of the cloud's catalog.", "false", "true where the cloud does not tell its endpoints"},

	"NetworkPolicy.openstackCIDRs": {"The networks of OpenStack's endpoints.", "endpoints that are addresses; else any address on those ports", "what is no network such as 192.0.2.0/24"},

	"NetworkPolicy.apiServerCIDRs":    {"The networks of the API server's addresses. Without effect on hypershift, where it is in the controller's namespace.", "any address on its ports", "what is no network such as 192.0.2.0/24"},
	"NetworkPolicy.metricsNamespaces": {"Namespaces whose pods may read the controller's metrics.", "none; on OpenShift its monitoring always may", "what is no namespace's name"},

	"Spec.trustedCA": {"Whether OpenShift's cluster-wide CA bundle is mounted.", "false", "true: this version does not emit it"},
	"Spec.images":    {"Images by role or sidecar: driver, provisioner, attacher, resizer, snapshotter, livenessprobe, registrar.", "those of manifests/components/images", "any other name"},

	"Image.registry":   {"Replaces the reference's first element.", "the pinned one", "what is no registry"},
	"Image.repository": {"Replaces the rest of the reference.", "the pinned one", "what is no repository"},
	"Image.tag":        {"Replaces the tag, and drops a digest that the same place does not name.", "the pinned one", "what is no tag"},
	"Image.digest":     {"The image's digest; wins over a tag.", "none", "what is not sha256: and 64 hex digits"},

	"Spec.planes":       {Meaning: "How the pods of the two roles run."},
	"Planes.controller": {Meaning: "The controller's pods."},
	"Planes.node":       {Meaning: "The nodes' pods. replicas and runAsUser are refused: they are on each node, and mounting needs root."},

	"Plane.images":           {"Images of this role alone; wins over spec.images.", "spec.images", "a name that the role has no container of"},
	"Plane.proxy":            {Meaning: "The HTTP proxy of calls to OpenStack, for the driver's container."},
	"Proxy.http":             {"Proxy for http URLs.", "none", "what is no URL; one with credentials in it"},
	"Proxy.https":            {"Proxy for https URLs.", "none", "what is no URL; one with credentials in it"},
	"Proxy.noProxy":          {"What is reached without a proxy, as in NO_PROXY.", "none", "$(, which Kubernetes would read as a variable"},
	"Plane.nodeSelector":     {"Labels of the nodes that the pods may run on.", "controller: none, on standalone the control plane's nodes; node: kubernetes.io/os: linux", "what are no labels"},
	"Plane.tolerations":      {"Taints that the pods tolerate, as Kubernetes has them. An empty list is none; on hypershift they are added to HyperShift's.", "controller: CriticalAddonsOnly and the control plane's taints, on hypershift HyperShift's; node: every taint", "what the API server refuses"},
	"Plane.podLabels":        {"Labels that are added to the pods.", "none", "what are no labels; another value of app"},
	"Plane.imagePullSecrets": {"Secrets with which images are pulled.", "none; the controller's on hypershift: pull-secret", "what is no Secret's name, or is there twice"},
	"Plane.runAsUser":        {"The user and group that the controller's pods run as.", "65532; on OpenShift its security context constraints choose", "less than 1: the pods do not run as root; any for node"},
	"Plane.replicas":         {"How many controller pods there are.", "2", "less than 1; any for node"},
	"Plane.resources":        {"Resources by container's name. Each that is set replaces that one resource.", "small requests, no limits", "the name of no container"},

	"Toleration.key":               {"The taint's key.", "every key", "what is no label's key; none without operator Exists"},
	"Toleration.operator":          {"How the taint is compared: its value too, or its key alone.", "Equal", ""},
	"Toleration.value":             {"The taint's value, for operator Equal.", "empty", "one beside operator Exists"},
	"Toleration.effect":            {"The taint's effect.", "every effect", ""},
	"Toleration.tolerationSeconds": {"How long a NoExecute taint is tolerated.", "for ever", "beside another effect"},
	"Resources.requests":           {"Requests by resource's name: cpu, memory, ephemeral-storage.", "10m CPU; 50Mi memory, 20Mi for a node's sidecars", "what is no resource or quantity, or more than the limit"},
	"Resources.limits":             {"Limits by resource's name.", "none", "what is no resource or quantity"},

	"Spec.hypershift":             {Meaning: "What holds on hypershift only."},
	"HyperShift.kubeconfigSecret": {"The Secret beside the controller with the kubeconfig of the guest.", DefaultKubeconfigSecret, "what is no Secret's name"},
	"HyperShift.infraID":          {"The hosted cluster's infrastructure id; the cluster id where no other is configured.", "none", ""},
	"HyperShift.platform":         {"The hosted cluster's platform, if it is known: OpenStack cannot be adopted.", "none, with a warning where it matters", ""},
}

// description is what a schema says of a key; empty where nothing is known of it.
func (a about) description() string {
	text := a.Meaning
	if a.Default != "" {
		text += " Default: " + a.Default + "."
	}
	if a.Refused != "" {
		text += " Refused: " + a.Refused + "."
	}
	return text
}

// Key is one key of a Distribution, as a reference lists it.
type Key struct {
	Path    string // spec.images.*.tag: * is any name, [] an element of a list
	Type    string // what it holds, in words
	Meaning string
	Default string
	Refused string
}

// Keys are all of a Distribution's, in their order. What several places share is listed once: the later one names the first.
func Keys() []Key {
	w := keyWalk{first: map[reflect.Type]string{}}
	w.walk("", reflect.TypeFor[Distribution]())
	return w.keys
}

type keyWalk struct {
	keys  []Key
	first map[reflect.Type]string // where a type's keys are listed
}

func (w *keyWalk) walk(path string, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name := jsonKey(f)
		if name == "" {
			continue
		}
		a := abouts[owner(t, f)+"."+name]
		k := Key{Path: strings.TrimPrefix(path+"."+name, "."), Meaning: a.Meaning, Default: a.Default, Refused: a.Refused}
		inner, below := element(f.Type)
		k.Type = typeName(f.Type, enums[owner(t, f)+"."+name])
		before, again := w.first[inner]
		if again {
			k.Meaning += " Its keys are those of `" + before + "`."
		}
		w.keys = append(w.keys, k)
		if inner.Kind() == reflect.Struct && !again {
			w.first[inner] = k.Path
			w.walk(k.Path+below, inner)
		}
	}
}

// element is what a list or map holds, and how its place is written in a path; any other type is itself.
func element(t reflect.Type) (reflect.Type, string) {
	switch t.Kind() {
	case reflect.Pointer:
		return element(t.Elem())
	case reflect.Slice:
		return t.Elem(), "[]"
	case reflect.Map:
		return t.Elem(), ".*"
	}
	return t, ""
}

func typeName(t reflect.Type, enum []any) string {
	if enum != nil {
		var values []string
		for _, v := range enum {
			values = append(values, v.(string))
		}
		return "one of " + strings.Join(values, ", ")
	}
	if t == reflect.TypeFor[IntOrAuto]() {
		return "number or auto"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), nil)
	case reflect.Slice:
		return "list of " + plural(typeName(t.Elem(), nil))
	case reflect.Map:
		return plural(typeName(t.Elem(), nil)) + " by name"
	case reflect.Struct:
		return "object"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "number"
	}
	return "text"
}

func plural(noun string) string {
	if slices.Contains([]string{"text", "object", "number"}, noun) {
		return noun + "s"
	}
	return noun
}
