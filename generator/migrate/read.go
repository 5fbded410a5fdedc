package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// input is what was read of all files.
type input struct {
	documents []document
	objects   map[string][]document // the same, by identity
	notes     []Note
	inline    []string          // workloads with an inline volume of the driver
	inlineOf  []string          // their arguments
	operators []document        // workloads of the driver that are not read, because an operator makes them
	hosts     map[string]string // the namespace of a HostedCluster, by that of its control plane
	secrets   map[string]bool   // names of Secrets that a hosted cluster needs
}

// readAll reads the files one after the other, and keeps only the documents that a format reads.
func readAll(files iter.Seq2[File, error]) (*input, error) {
	in := &input{objects: map[string][]document{}, hosts: map[string]string{}, secrets: map[string]bool{}}
	unread := map[string]*otherKinds{}
	var sources []string
	var problems []error
	for f, err := range files {
		if err != nil {
			return nil, err
		}
		if sources = appendNew(sources, f.source()); unread[f.source()] == nil {
			unread[f.source()] = &otherKinds{count: map[string]int{}, about: map[string]string{}}
		}
		documents, err := open(f)
		clear(f.Content)
		switch {
		case err != nil && f.Directory == "":
			problems = append(problems, err)
			unread[f.source()].read = true // the error says enough
		case err != nil:
			in.notes = append(in.notes, Note{File: f.Name, Key: "the file", Why: strings.TrimPrefix(err.Error(), ErrFile.Error()+": "+f.Name+": ")})
		}
		in.keep(documents, unread[f.source()])
	}
	for _, source := range sources {
		problems = append(problems, in.tellUnread(source, unread[source]))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return in, nil
}

type otherKinds struct {
	count map[string]int    // by kind
	about map[string]string // those that are about the driver all the same, with what to give instead
	read  bool              // another document of the argument is read
}

// ofWorkload follows the kind of an object that a workload makes.
const (
	ofWorkload = " of a workload"
	whyOwned   = "import reads the Deployment, StatefulSet or DaemonSet that makes it; give that"
)

// keep sorts documents. An object that is there twice, as in a must-gather directory, is kept once.
func (in *input) keep(documents []document, other *otherKinds) {
	for _, d := range documents {
		if d.ofKubelet() {
			in.notes = append(in.notes, Note{File: d.label(), Key: "the object", Why: "its kubelet makes it from a file of the node; if that is the installation, name the file"})
			continue
		}
		if d.owned() {
			other.count[d.kind()+ofWorkload]++
			continue
		}
		if !isRead(d) {
			switch inline := inlineVolumes(d); {
			case inline > 0:
				in.inline, in.inlineOf = append(in.inline, d.name()), appendNew(in.inlineOf, d.source)
			case d.ofKubespray():
				other.about[d.label()] = ofKubespray
			case d.isAboutDriver() && slices.Contains(operatorWorkloads, d.name()):
				other.about[d.label()], in.operators = ofOperator, append(in.operators, d)
			case d.isAboutDriver():
				other.about[d.label()] = aboutTheDriver
			default:
				other.count[d.unreadKind()]++
			}
			continue
		}
		if d.inText && !d.installs() {
			in.notes = append(in.notes, Note{File: d.label(), Key: "the object", Why: "a text may install a driver, and does not say what a cluster has"})
			continue
		}
		other.read = true
		if d.kind() != "" && slices.ContainsFunc(in.objects[d.identity()], func(other document) bool { return d.within == other.within && reflect.DeepEqual(d.yaml, other.yaml) }) {
			continue
		}
		in.documents = append(in.documents, d)
		in.objects[d.identity()] = append(in.objects[d.identity()], d)
		if d.group() == hyperShiftGroup {
			in.secrets[d.text("spec", "platform", "openstack", "identityRef", "name")], in.secrets[v1alpha1.DefaultKubeconfigSecret] = true, true
		}
		if d.kind() == "HostedCluster" {
			in.hosts[controlPlaneNamespace(d)] = d.namespace()
		}
	}
}

// ofKubelet is whether a kubelet made an object from a file of its node. Kubernetes asks for the key alone, so a node may leave the value empty.
func (d document) ofKubelet() bool {
	metadata, _ := d.yaml["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, mirror := annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// ofOpenShift are namespaces in which only OpenShift and who administers it write: whose one is, all are.
var ofOpenShift = []string{"openshift-cluster-csi-drivers", "openshift-config", "openshift-config-managed", "openshift-cloud-controller-manager"}

// owner is whose a document is. What HyperShift makes beside a control plane belongs to the owner of the HostedCluster.
func (in *input) owner(d document) string {
	owner := d.owner()
	made := d.kind() == "HostedControlPlane" || d.kind() == "Secret" || slices.Contains(slices.Concat(ofHyperShift, operatorWorkloads), d.name())
	switch {
	case slices.Contains(ofOpenShift, owner):
		return ofOpenShift[0]
	case made && d.within == "":
		return cmp.Or(in.hosts[owner], owner)
	}
	return owner
}

// choose leaves what belongs to the chosen namespaces. Anybody who may create an object in a namespace can make one that looks like a part of an
// installation. So what is of several owners is taken together only if somebody chose these. Errors: ErrSeveral, ErrFile.
func (in *input) choose(chosen []string) error {
	var owners, namespaces []string
	for _, d := range slices.Concat(in.documents, in.operators) {
		if owner := in.owner(d); owner != "" && (d.kind() != "Secret" || in.secrets[d.name()] || d.holdsConf()) {
			owners, namespaces = appendNew(owners, owner), appendNew(appendNew(namespaces, owner), d.owner())
		}
	}
	for _, namespace := range chosen {
		if !slices.Contains(namespaces, namespace) {
			return fmt.Errorf("%w: namespace %q of --old-namespace has no configuration of a Cinder driver", ErrFile, namespace)
		}
	}
	if len(chosen) == 0 {
		if len(owners) > 1 {
			return fmt.Errorf("%w of a Cinder driver, in the namespaces %s; look whose they are, and name those of one with --old-namespace", ErrSeveral, quoted(slices.Sorted(slices.Values(owners))))
		}
		return nil
	}
	others := func(d document) bool {
		return d.owner() != "" && !slices.Contains(chosen, d.owner()) && !slices.Contains(chosen, in.owner(d))
	}
	for _, d := range in.documents {
		if others(d) {
			in.notes = append(in.notes, Note{File: d.label(), Key: "the object", Why: "--old-namespace does not name its namespace"})
		}
	}
	in.documents = slices.DeleteFunc(in.documents, others)
	for identity, same := range in.objects {
		if same = slices.DeleteFunc(same, others); len(same) > 0 {
			in.objects[identity] = same
		} else {
			delete(in.objects, identity)
		}
	}
	return nil
}

// inlineVolumes is the number of volumes of the driver that the pods of a workload have without a claim.
func inlineVolumes(d document) int {
	template, err := podTemplate(d)
	if err != nil || !isWorkload(d.kind()) {
		return 0
	}
	return cluster.InlineVolumes(template.Spec, cluster.UpstreamName)
}

// ofKubespray reports whether a document has variables of Kubespray about the driver.
func (d document) ofKubespray() bool {
	return d.kind() == "" && slices.ContainsFunc(slices.Collect(maps.Keys(d.yaml)), func(key string) bool {
		return strings.HasPrefix(key, "cinder_csi_") || strings.HasPrefix(key, "cinder_topology") || strings.HasPrefix(key, "external_openstack_")
	})
}

// identity tells objects from each other.
func (d document) identity() string { return d.kind() + " " + d.namespace() + "/" + d.name() }

// tellUnread names what no format reads. An argument without anything to read is a mistake.
func (in *input) tellUnread(source string, other *otherKinds) error {
	var kinds, advice []string
	for _, kind := range slices.Sorted(maps.Keys(other.count)) {
		n := ""
		if other.count[kind] > 1 {
			n = fmt.Sprintf(" (%d)", other.count[kind])
		}
		kinds = append(kinds, kind+n)
		why := whyUnread[kind]
		if strings.HasSuffix(kind, ofWorkload) {
			why = whyOwned
		}
		if why != "" {
			advice = append(advice, ". "+kind+": "+why)
		}
		why = cmp.Or(why, "it has no setting of the driver")
		in.notes = append(in.notes, Note{File: source, Key: kind + n, Why: why})
	}
	for _, label := range slices.Sorted(maps.Keys(other.about)) {
		in.notes = append(in.notes, Note{File: label, Key: "the document", Why: other.about[label]})
	}
	switch {
	case other.read:
		return nil
	case len(other.about) > 0:
		var problems []error
		for _, label := range slices.Sorted(maps.Keys(other.about)) {
			problems = append(problems, fmt.Errorf("%w: %s: %s", ErrFile, label, other.about[label]))
		}
		return errors.Join(problems...)
	}
	found := "nothing"
	if len(kinds) > 0 {
		found = strings.Join(kinds, ", ")
	}
	return fmt.Errorf("%w: %s: it has %s, and no setting of a Cinder driver. Import reads cloud.conf, the values of the chart openstack-cinder-csi, "+
		"the workloads, classes, ConfigMaps and PersistentVolumes of an installation, and the configuration of OpenShift and HyperShift%s", ErrFile, source, found, strings.Join(advice, ""))
}

var (
	ofKubespray = "it has variables of Kubespray. Give what Kubespray makes of them: cinder-csi-*.yml and the cloud.conf in /etc/kubernetes of a control plane node, or --kubeconfig"
	ofOperator  = "OpenShift's operator makes it of objects that import reads: Infrastructure, ClusterCSIDriver, Proxy, Network, APIServer and the ConfigMaps (" + pages.ImportAConfiguration.String() + ")"
)

// aboutTheDriver is what to do with a document that import knows to be about the driver and does not read.
const aboutTheDriver = "import does not read this, and it is about the driver. Give what it renders or makes: the output of kustomize build or helm template, the text of helm get values, or --kubeconfig"
