package migrate

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// pods are the controller pods, the node pods, or both.
type pods struct {
	name  string
	roles func(*v1alpha1.Roles) []*v1alpha1.RolePods
}

var (
	controllerPods = pods{"controller", func(p *v1alpha1.Roles) []*v1alpha1.RolePods { return []*v1alpha1.RolePods{&p.Controller} }}
	nodePods       = pods{"node", func(p *v1alpha1.Roles) []*v1alpha1.RolePods { return []*v1alpha1.RolePods{&p.Node} }}
	bothPods       = pods{"*", func(p *v1alpha1.Roles) []*v1alpha1.RolePods { return []*v1alpha1.RolePods{&p.Controller, &p.Node} }}
)

// eachRole decodes a value into a field of each role.
func eachRole(of pods, field func(*v1alpha1.RolePods) any) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		for _, pl := range of.roles(&p.Spec.Roles) {
			if err := v.into(field(pl)); err != nil {
				return err
			}
		}
		return nil
	}
}

func annotations(pl *v1alpha1.RolePods) *map[string]string { return &pl.PodAnnotations }
func labels(pl *v1alpha1.RolePods) *map[string]string      { return &pl.PodLabels }

// word is a value that a label can have, which everybody reads.
var word = regexp.MustCompile(`^[A-Za-z0-9._:/-]{0,63}$`)

// addPodMap adds labels or annotations. Those of others may be anything, such as a template with a password, unless they are a word.
func (p *proposal) addPodMap(of pods, field func(*v1alpha1.RolePods) *map[string]string, more map[string]string) {
	given := len(more)
	for _, key := range slices.Sorted(maps.Keys(more)) {
		if kind, value := secret.Annotation(key), more[key]; kind == secret.Secret || kind == secret.Unknown && !word.MatchString(value) || secret.In(value) != "" {
			p.note("the label or annotation "+key, "", notPublic+cmp.Or(p.to, "spec.roles."+of.name+".podAnnotations"))
			delete(more, key)
		}
	}
	if given > 0 && len(more) == 0 {
		p.to = "" // each has a note
		return
	}
	for _, pl := range of.roles(&p.Spec.Roles) {
		add(field(pl), more)
	}
}

func add[T any](into *map[string]T, more map[string]T) {
	if *into == nil {
		*into = map[string]T{}
	}
	maps.Copy(*into, more)
}

func setResources(container string, of pods) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		var r v1alpha1.Resources
		if err := v.withTexts().into(&r); err != nil {
			return err
		}
		for _, pl := range of.roles(&p.Spec.Roles) {
			add(&pl.Resources, map[string]v1alpha1.Resources{container: r})
		}
		return nil
	}
}

func imageOf(p *proposal, name string) *v1alpha1.Image {
	i := &p.Spec.Images
	return map[string]*v1alpha1.Image{
		"attacher": &i.Attacher, "provisioner": &i.Provisioner, "snapshotter": &i.Snapshotter, "resizer": &i.Resizer,
		"livenessprobe": &i.LivenessProbe, "registrar": &i.Registrar,
	}[name]
}

// publicRegistry has the sidecars of Kubernetes; the bundle takes them from there by default.
const publicRegistry = "registry.k8s.io/sig-storage/"

// formerRegistry matches where the sidecars of Kubernetes were until 2021 and 2023. A mirror may have such a name in its path.
var formerRegistry = regexp.MustCompile(`^(?:quay\.io/k8scsi|k8s\.gcr\.io/sig-storage|gcr\.io/k8s-staging-sig-storage|(?:(?:us|eu|asia)\.)?gcr\.io/k8s-artifacts-prod/sig-storage)/`)

func setRepository(name string) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		text, err := v.text()
		if err != nil {
			return err
		}
		registry, repository, found := strings.Cut(text, "/")
		switch {
		case strings.HasPrefix(text, publicRegistry):
			return leave("the bundle takes it from there by default")
		case formerRegistry.MatchString(text):
			return leave("it is a former home of the public images, which has none of today's; the bundle takes them from " + publicRegistry)
		case !found || !strings.ContainsAny(registry, ".:"):
			return leave("it names no registry; name registry and repository in spec.images." + name)
		}
		if named, _, tagged := strings.Cut(repository, ":"); tagged {
			repository, p.why = named, "without its tag: the bundle names the version that this driver was tested with"
		}
		image := imageOf(p, name)
		image.Registry, image.Repository = registry, repository
		return nil
	}
}

func setTopology(p *proposal, v value) error {
	on, err := v.yes()
	switch {
	case err != nil:
		return err
	case on && p.known.withoutZones:
		p.Spec.Topology.Mode = v1alpha1.Disabled
		p.why = "something else turns topology off"
		return nil
	case on:
		p.Spec.Topology.Mode = v1alpha1.Enabled
		p.why = zonesStay
		return nil
	}
	p.Spec.Topology.Mode = v1alpha1.Disabled
	return nil
}

// zonesStay is why topology that was on stays on, whatever the names of the zones are: with auto the generator may turn it off.
const zonesStay = "existing PersistentVolumes name zones, and pods with them need nodes that carry zones. " +
	"A compute zone without a volume zone of its name needs an entry in spec.topology.zoneMap; plan names those"

// setIgnoredZone reads ignore-volume-az. With it, upstream's plugin creates volumes without a zone, and still writes the zones of the nodes
// into PersistentVolumes. OpenShift's operator sets it too, and says by enable_topology whether it uses zones.
func setIgnoredZone(p *proposal, v value) error {
	text, err := v.text()
	switch {
	case err != nil:
		return err
	case p.document.kind() != "":
		return leave("enable_topology says whether zones are used; where their names differ, map them in spec.topology.zoneMap")
	case slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(text)):
		return leave("the driver creates volumes in the zone of the node")
	case p.known.withoutZones:
		return leave("the values turn topology off")
	}
	p.Spec.Topology.Mode = v1alpha1.Enabled
	return nil
}

func setReplicas(p *proposal, v value) error {
	n, err := v.whole()
	p.Spec.Roles.Controller.Replicas = &n
	return err
}

func setKubeletDir(p *proposal, v value) error {
	dir, err := v.text()
	if dir = path.Clean(dir); err == nil && dir == usualKubeletDir {
		return leave("it is the default of upstream's chart, and the bundle has its own")
	}
	p.Spec.Driver.KubeletDir = dir
	return err
}

// setWord sets a text for true, and leaves false out.
func setWord(field func(*proposal) *string, word, otherwise string) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		on, err := v.yes()
		switch {
		case err != nil:
			return err
		case !on:
			return leave(otherwise)
		}
		*field(p) = word
		return nil
	}
}

var (
	setPodMonitor = setWord(func(p *proposal) *string { return &p.Spec.Monitoring.Kind }, v1alpha1.PodMonitor, "the bundle makes none by default")
	keepDefault   = setWord(func(p *proposal) *string { return &p.Spec.StorageClasses.Default }, v1alpha1.None, "the generator chooses the default class (spec.storageClasses.default: auto)")
)

func setLogLevel(p *proposal, v value) error {
	n, err := v.whole()
	p.Spec.Driver.LogLevel = &n
	return err
}

func setPVCAnnotations(p *proposal, v value) error {
	on, err := v.yes()
	p.Spec.Driver.PVCAnnotations = &on
	return err
}

// setExtraArgs reads what the chart puts below args as it is: a text with a YAML list. Each flag has its row, as in a container.
func setExtraArgs(of pods) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		args, err := argsOf(v)
		if err != nil {
			return err
		}
		p.tellWords("an argument of extraArgs", args)
		err = p.readFlags(of, "extraArgs ", corev1.Container{Args: args}, map[string]bool{})
		p.to = "" // the notes of the flags say what they became
		return err
	}
}

// tellWords notes words that are neither a flag nor the value of the flag before them. A note has no word: it may be a secret.
func (p *proposal) tellWords(key string, words []string) {
	for i, word := range words {
		if !strings.HasPrefix(word, "-") && (i == 0 || !strings.HasPrefix(words[i-1], "-") || strings.Contains(words[i-1], "=")) {
			p.note(key, "", "it is no flag, and the driver takes none")
		}
	}
}

// argsOf are the words of extraArgs.
func argsOf(v value) ([]string, error) {
	if text, is := v.any.(string); is {
		var list any
		if err := inner(text, &list); err != nil {
			return nil, errType
		}
		v = value{list}
	}
	var args []string
	err := v.into(&args)
	return args, err
}

// envOrProxy is where the variables of the driver go.
const envOrProxy = "spec.roles.*.env or spec.roles.controller.proxy"

// notPublic is of variables and annotations whose names say nothing about their values.
const notPublic = "it may hold a secret, because import does not know the name. If it holds none and you need it, write it into "

const mayHoldSecret = "it may hold a secret, which a Distribution must not"

// setEnv takes the proxy and the variables with a plain value.
func setEnv(of pods) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		var env []variable
		if err := v.into(&env); err != nil {
			return err
		}
		for _, e := range env {
			p.setVariable("csi.plugin.extraEnv "+e.Name, of, e)
		}
		p.to = "" // the notes of the variables say what they became
		return nil
	}
}

type variable struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	ValueFrom any    `json:"valueFrom"`
}

func (p *proposal) setVariable(key string, of pods, e variable) {
	switch field := proxyField(&p.Spec.Roles.Controller.Proxy, e.Name); {
	case e.ValueFrom != nil:
		p.note(key, "", "a bundle sets plain values only")
	case secret.Variable(e.Name) == secret.Secret || secret.InValue(e.Name, e.Value) != "" || (field != nil || strings.Contains(e.Value, "://")) && hasLogin(e.Value):
		p.note(key, "", mayHoldSecret)
	case field != nil:
		*field = e.Value
		if strings.ToUpper(e.Name) != "NO_PROXY" && e.Value != "" && !strings.Contains(e.Value, "://") {
			*field = "http://" + e.Value // as the programs read it
		}
		p.note(key, "spec.roles.controller.proxy", "")
	case secret.Variable(e.Name) != secret.Public:
		p.note(key, "", notPublic+"spec.roles."+of.name+".env")
	default:
		for _, pl := range of.roles(&p.Spec.Roles) {
			add(&pl.Env, map[string]string{e.Name: e.Value})
		}
		p.note(key, "spec.roles."+of.name+".env", "")
	}
}

func proxyField(p *v1alpha1.Proxy, name string) *string {
	return map[string]*string{"HTTP_PROXY": &p.HTTP, "HTTPS_PROXY": &p.HTTPS, "NO_PROXY": &p.NoProxy}[strings.ToUpper(name)]
}

// hasLogin is whether a proxy or URL may have a login, also one with signs that a URL must not have.
func hasLogin(url string) bool { return strings.Contains(url, "@") }

// setSecretData reads each text that is a cloud.conf; its credentials never become part of a note.
func setSecretData(p *proposal, v value) error {
	var files map[string]string
	if err := v.into(&files); err != nil {
		return err
	}
	read := false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found, err := p.readInside(p.file+" secret.data "+name, files[name], isCloudConf, p.readCloudConf)
		if err != nil && !errors.Is(err, errInside) {
			return err
		}
		read = read || found
	}
	if !read {
		return leave("none of its texts is a cloud.conf")
	}
	p.to = "" // the notes of its keys say what they became
	return nil
}

// errInside says that a text in a value is no file that import reads.
var errInside = errors.New("no file")

// readInside reads documents of a text that a value holds. It reports whether there was one. Errors: errInside.
func (p *proposal) readInside(name, text string, is func(document) bool, read func(document) error) (found bool, err error) {
	all, err := open(File{Name: name, Content: []byte(text)})
	if err != nil {
		return false, errInside
	}
	outer := p.file
	defer func() { p.file = outer }()
	for _, d := range all {
		if is(d) {
			p.file, found = d.label(), true
			if err := read(d); err != nil {
				return true, err
			}
		}
	}
	return found, nil
}
