package migrate

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

const (
	flagOfBundle = "the bundle sets it"
	noEffect     = "it has no effect in this driver"
)

var oneCloud = "a bundle serves one cloud; for several, replace only the image of upstream's plugin (" + pages.ReplaceUpstream.String() + ")"

// flagRules has a row for each flag of upstream's plugin that is not passed on in spec.driver.extraArgs.
var flagRules = []rule{
	{key: "cluster", to: "spec.clusterID", set: func(p *proposal, v value) (err error) { p.Spec.ClusterID, err = v.text(); return err }},
	{key: "with-topology", to: "spec.topology.mode", why: "with --feature-gates=Topology of the provisioner"}, // by setZones
	{key: "v", to: "spec.driver.logLevel", set: setLogLevel},
	{key: "pvc-annotations", to: "spec.driver.pvcAnnotations", set: setPVCAnnotations},
	{key: "cloud-name", why: oneCloud},
	{key: "endpoint", why: flagOfBundle},
	{key: "cloud-config", why: flagOfBundle},
	{key: "provide-controller-service", why: flagOfBundle},
	{key: "provide-node-service", why: flagOfBundle},
	{key: "http-endpoint", why: "the controller of a bundle always serves metrics"},
	{key: "master", why: "the driver of a bundle asks the API server of its cluster"},
	{key: "kubeconfig", why: "the driver of a bundle asks the API server of its cluster"},
	{key: "kube-api-qps", why: noEffect},
	{key: "kube-api-burst", why: noEffect},
	{key: "min-resync-period", why: noEffect},
	{key: "nodeid", why: noEffect},
	{key: "node-service-no-os-client", why: noEffect},
	{key: "any other", to: "spec.driver.extraArgs"},
}

// containerRules are for the documentation.
var containerRules = func() []rule {
	rows := []rule{
		{key: "image of a sidecar", to: "spec.images", why: "registry and repository, if they are not those of Kubernetes"},
		{key: "resources", to: "spec.roles.*.resources"},
		{key: "env of the driver", to: envOrProxy},
		{key: "args of a sidecar", why: "a bundle has fixed flags for the sidecars; change them with a Kustomize layer over the bundle"},
	}
	for _, r := range flagRules {
		r.key = "--" + r.key
		rows = append(rows, r)
	}
	return rows
}()

// sidecars are the containers beside the driver: the last part of their image, and their name in a Distribution.
var sidecars = map[string]string{
	"csi-attacher": "attacher", "csi-provisioner": "provisioner", "csi-snapshotter": "snapshotter", "csi-resizer": "resizer",
	"livenessprobe": "livenessprobe", "csi-node-driver-registrar": "registrar",
}

// setContainers reads the containers one by one, and writes a note for each thing that they set.
func setContainers(of pods, before bool) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		template, err := podTemplate(p.document)
		if err != nil {
			return err
		}
		driver := isDriver(template.Spec)
		all := template.Spec.Containers
		if before {
			all = template.Spec.InitContainers
		}
		items, _ := v.any.([]any)
		for i, c := range all {
			fields, _ := items[i].(map[string]any)
			if err := p.readContainer(of, c, fields, driver(c)); err != nil {
				return err
			}
		}
		if p.decides(of) && slices.ContainsFunc(all, driver) {
			p.setZones(template.Spec)
		}
		p.to = "" // the notes of the containers say what they became
		return nil
	}
}

func (p *proposal) readContainer(of pods, c corev1.Container, fields map[string]any, driver bool) error {
	key := "container " + c.Name
	name := "driver"
	switch sidecar, known := sidecars[imageName(c.Image)]; {
	case driver:
		if err := p.readDriver(of, c); err != nil {
			return err
		}
	case known:
		name = sidecar
		if err := p.apply(rule{to: "spec.images." + name, set: setRepository(name)}, key+" image", value{repository(c.Image)}); err != nil {
			return err
		}
	default:
		p.note(key, "", "the bundle has no such container; add it with a Kustomize layer over the bundle")
		return nil
	}
	if !driver {
		p.tellSidecar(key, c)
	}
	known, _ := jsonValue(c).(map[string]any)
	for _, field := range []string{"env", "envFrom", "resources"} {
		p.strange(key+" "+field, fields[field], known[field])
	}
	p.prefix = key + " "
	defer func() { p.prefix = "" }()
	if err := p.walk(containerKeys, "", fields, func(string) string { return "the containers of a bundle have none" }); err != nil {
		return err
	}
	p.prefix = ""
	if len(c.Resources.Requests) > 0 || len(c.Resources.Limits) > 0 {
		p.setContainerResources(of, name, c.Resources)
		p.note(key+" resources", "spec.roles."+of.name+".resources."+name, "")
	}
	return nil
}

func imageName(image string) string { return path.Base(repository(image)) }

// repository is an image without tag and digest.
func repository(image string) string {
	name, _, _ := plan.SplitImage(image)
	return name
}

func (p *proposal) setContainerResources(of pods, name string, given corev1.ResourceRequirements) {
	amounts := func(list corev1.ResourceList) map[string]string {
		var all map[string]string
		for resource, quantity := range list {
			add(&all, map[string]string{string(resource): quantity.String()})
		}
		return all
	}
	for _, pl := range of.roles(&p.Spec.Roles) {
		add(&pl.Resources, map[string]v1alpha1.Resources{name: {Requests: amounts(given.Requests), Limits: amounts(given.Limits)}})
	}
}

// readDriver reads flags and environment of upstream's plugin. The node pods repeat what the controller decides.
func (p *proposal) readDriver(of pods, c corev1.Container) error {
	key := "container " + c.Name + " "
	p.note(key+"image", "", "it is the image of upstream's plugin; name that of this driver in spec.images.driver ("+pages.BuildTheImage.String()+")")
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			p.note(key+"envFrom Secret "+from.SecretRef.Name, "", "import reads no value of a Secret; put credentials into clouds.yaml, and other variables into spec.roles.*.env")
		case from.ConfigMapRef != nil:
			p.note(key+"envFrom ConfigMap "+from.ConfigMapRef.Name, "", "a bundle sets plain values only; write the variables that the driver needs into spec.roles.*.env")
		}
	}
	decides := p.decides(of)
	if runsShell(c) {
		if decides && !p.known.clusterID {
			return p.problem("%sflags: a shell has them, so import cannot read --cluster, and existing volumes are found by it; %s", key, giveClusterID)
		}
		p.note(key+"flags", "", "a shell has them, and import cannot read that; write what they set into the Distribution")
		p.readVariables(of, c, map[string]bool{})
		return nil
	}
	if words := slices.Concat(c.Command, c.Args); len(words) > 0 {
		if !strings.HasPrefix(words[0], "-") { // the program
			words = words[1:]
		}
		p.tellWords(key+"argument", words)
	}
	given := flagsOf(c)
	if _, named := given["cluster"]; !named && decides {
		p.note(key+"--cluster", "", "the plugin has none, so its volumes carry no mark of this cluster; the bundle marks new ones with spec.clusterID")
	}
	used := map[string]bool{}
	if err := p.readFlags(of, key, c, used); err != nil {
		return err
	}
	p.readVariables(of, c, used)
	return nil
}

// readFlags reads the flags of the driver, and remembers the variables that they are made of.
func (p *proposal) readFlags(of pods, key string, c corev1.Container, used map[string]bool) error {
	decides := p.decides(of)
	for _, f := range sortedFlags(flagsOf(c)) {
		text, resolved := resolve(c, f.value, used)
		r := flagRule(f.name)
		switch {
		case f.name == "cluster" && !resolved && decides && p.known.clusterID:
			p.note(key+"--cluster", "", "a values file has clusterID")
		case f.name == "cluster" && !resolved && decides:
			return p.problem("%s--cluster: import cannot read where its value comes from, and existing volumes are found by it; %s", key, giveClusterID)
		case !decides && r.set != nil, f.name == "with-topology": // the controller has it, and setZones reads the other
		case r.key == "any other" && mayBeSecret(f, text):
			p.note(key+"--"+f.name, "", mayHoldSecret)
		case r.key == "any other" && resolved:
			p.addArg(of, "--"+f.name+"="+text)
			p.note(key+"--"+f.name, r.to, "")
		case r.key == "any other":
			p.note(key+"--"+f.name, "", "import cannot read where its value comes from; write it into spec.driver.extraArgs")
		default:
			if err := p.apply(r, key+"--"+f.name, value{text}); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveClusterID is what to do where import cannot read --cluster.
const giveClusterID = "give a further file with the line clusterID: VALUE"

// decides is whether these pods say what the whole driver does: the controller, or the nodes where no file has the controller.
func (p *proposal) decides(of pods) bool {
	return of.name == controllerPods.name || !p.known.controller
}

// readVariables reads the environment of upstream's plugin, without the variables that flags are made of.
func (p *proposal) readVariables(of pods, c corev1.Container, used map[string]bool) {
	key := "container " + c.Name + " "
	for _, e := range c.Env {
		if used[e.Name] || slices.Contains([]string{"CSI_ENDPOINT", "CLOUD_CONFIG", "CLUSTER_NAME"}, e.Name) {
			continue
		}
		v := variable{Name: e.Name, Value: e.Value}
		if e.ValueFrom != nil {
			v.ValueFrom = e.ValueFrom
		}
		p.setVariable(key+"env "+e.Name, of, v)
	}
}

func (p *proposal) addArg(of pods, arg string) {
	e := &p.Spec.Driver.ExtraArgs
	if of.name != nodePods.name {
		e.Controller = append(e.Controller, arg)
	}
	if of.name != controllerPods.name {
		e.Node = append(e.Node, arg)
	}
}

func flagRule(name string) rule {
	i := slices.IndexFunc(flagRules, func(r rule) bool { return r.key == name })
	if i < 0 {
		i = len(flagRules) - 1
	}
	return flagRules[i]
}

// setZones says whether upstream's plugin used zones, which both it and its provisioner decide.
func (p *proposal) setZones(pod corev1.PodSpec) {
	unread := slices.ContainsFunc(cluster.Containers(pod), func(c corev1.Container) bool {
		return cluster.IsCinderDriver(c) && (runsShell(c) || reference.MatchString(zonesFlag(c)))
	})
	switch {
	case unread && !p.known.withoutZones:
		p.note("--with-topology", "", "import cannot read it; check spec.topology.mode")
		return
	case p.known.withoutZones:
		p.Spec.Topology.Mode = v1alpha1.Disabled
		p.note("--with-topology and --feature-gates=Topology", "spec.topology.mode", "")
		return
	}
	p.Spec.Topology.Mode = v1alpha1.Enabled
	p.note("--with-topology and --feature-gates=Topology", "spec.topology.mode", zonesStay)
}

func zonesFlag(c corev1.Container) string {
	text, _ := resolve(c, flagsOf(c)["with-topology"], map[string]bool{})
	return text
}

// gateIsOff reports whether a release of external-provisioner has the gate Topology off by default, as all before v5.0.0.
func gateIsOff(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	return regexp.MustCompile(`:v?[0-4]\.[0-9]+\.[0-9]+`).MatchString(image)
}

// podTurnsZonesOff is whether a pod of upstream runs without topology.
func podTurnsZonesOff(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(cluster.Containers(pod), func(c corev1.Container) bool {
		given := flagsOf(c)
		switch {
		case cluster.IsCinderDriver(c):
			return strings.EqualFold(zonesFlag(c), "false")
		case sidecars[imageName(c.Image)] == "provisioner":
			gates := strings.ToLower(given["feature-gates"])
			return strings.Contains(gates, "topology=false") || gateIsOff(c.Image) && !strings.Contains(gates, "topology=true")
		}
		return false
	})
}

// usualFlags are flags of sidecars that every installation has and that change no volume.
var usualFlags = []string{
	"csi-address", "timeout", "leader-election", "leader-election-namespace", "leader-election-lease-duration", "leader-election-renew-deadline", "leader-election-retry-period",
	"v", "feature-gates", "kubelet-registration-path", "health-port", "probe-timeout", "http-endpoint", "metrics-address", "metrics-path", "kube-api-qps", "kube-api-burst",
	"worker-threads", "workers", "handle-volume-inuse-error", "extra-create-metadata", "logging-format", "resync",
	"connection-timeout", "enable-leader-election", "leader-election-type", "provisioner",
}

// adviceOfFlag is what to do instead of a sidecar's flag that changes volumes.
var adviceOfFlag = map[string]string{
	"default-fstype":     "the sidecars of a bundle have ext4; give each class its file system in spec.storageClasses.overrides.*.fsType, or new volumes get another one than before",
	"strict-topology":    "the provisioner of a bundle has it",
	"immediate-topology": "the provisioner of a bundle does not have it, so a class with volumeBindingMode Immediate names a zone",
	"volume-name-prefix": "the volumes of a bundle have the prefix pvc; the names of existing ones stay",
}

// tellSidecar has a line for each flag and variable of a sidecar that somebody chose: those of a bundle are fixed.
func (p *proposal) tellSidecar(key string, c corev1.Container) {
	given := flagsOf(c)
	for _, f := range sortedFlags(given) {
		why, known := adviceOfFlag[f.name]
		switch {
		case slices.Contains(usualFlags, f.name):
		case known:
			p.note(key+" --"+f.name, "", why)
		default:
			p.note(key+" --"+f.name, "", "a bundle has fixed flags for the sidecars; change them with a Kustomize layer over the bundle")
		}
	}
	words := strings.Join(slices.Concat(c.Command, c.Args), " ")
	for _, e := range c.Env {
		if !strings.Contains(words, "$("+e.Name+")") {
			p.note(key+" env "+e.Name, "", "spec.roles.*.env sets variables for every container of a pod")
		}
	}
}

// containerKeys are the keys of a container that readContainer reads, and why the others are left out. The walk tells of every other key.
var containerKeys = []rule{
	{key: "name", set: consumed},
	{key: "image", set: consumed},
	{key: "command", set: consumed},
	{key: "args", set: consumed},
	{key: "env", set: consumed},
	{key: "envFrom", set: consumed},
	{key: "resources", set: consumed},
	{key: "restartPolicy", why: "the bundle has the driver among the containers"},
	{key: "terminationMessagePath", set: consumed},
	{key: "terminationMessagePolicy", set: unlessUsual("the containers of a bundle have their own", func(v value) bool { return v.any == string(corev1.TerminationMessageReadFile) })},
	{key: "imagePullPolicy", set: unlessUsual("name it in spec.images.*.pullPolicy", func(v value) bool { return v.any == string(corev1.PullIfNotPresent) })},
	{key: "livenessProbe", why: fixedProbes},
	{key: "readinessProbe", why: fixedProbes},
	{key: "startupProbe", why: fixedProbes},
	{key: "securityContext", why: "the containers of a bundle have the least rights that work"},
	{key: "lifecycle", why: "the containers of a bundle have their own; spec.driver.drainTimeout says how long RPCs may take after SIGTERM"},
	{key: "ports", why: "the ports of a bundle are fixed"},
	{key: "volumeMounts", set: unlessUsual("the bundle mounts what the driver needs", usualMount)},
	{key: "volumeDevices", why: "the bundle mounts what the driver needs"},
}

// consumed is for a key that a reader has used already.
func consumed(p *proposal, _ value) error {
	p.to = ""
	return nil
}

// unlessUsual leaves a value out, with a line if somebody chose it.
func unlessUsual(why string, isUsual func(value) bool) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		if p.to = ""; isUsual(v) {
			return nil
		}
		return leave(why)
	}
}

const fixedProbes = "the probes of a bundle have fixed times"

// usualMounts are the directories that upstream's manifests mount.
var usualMounts = []string{"/csi", "/etc/config", "/etc/kubernetes", "/etc/cacert", "/registration", "/dev", "/var/lib/kubelet", "/etc/pki", "/etc/ssl", "/var/lib/csi/sockets/pluginproxy"}

// usualMount reports whether a container mounts nothing that somebody added.
func usualMount(v value) bool {
	var mounts []corev1.VolumeMount
	return v.loosely(&mounts) == nil && !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool {
		return !slices.ContainsFunc(usualMounts, func(dir string) bool {
			return m.MountPath == dir || strings.HasPrefix(m.MountPath, dir+"/") && dir != "/etc/ssl" && dir != "/etc/pki"
		})
	})
}
