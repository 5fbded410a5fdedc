package migrate

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// inTreeProvisioner is the name of the Cinder plugin that was a part of Kubernetes.
const inTreeProvisioner = "kubernetes.io/cinder"

// ownPrefix begins the names of a bundle's classes where a class has the name of its volume type.
const ownPrefix = "cinder-"

const (
	classStays    = "the class stays in the cluster as it is"
	inTreeStays   = "the class stays in the cluster as it is. Kubernetes gives its claims to the driver with the name " + cluster.UpstreamName + ", so the bundle must have that name (spec.driver.name)"
	takeDefaultOf = "a snapshot without a class fails if two classes of one driver are the default, and that of the bundle is one. Before the swap run: " +
		"kubectl annotate --overwrite volumesnapshotclass "
)

func isCinderClass(d document) bool {
	return slices.Contains([]string{cluster.UpstreamName, inTreeProvisioner}, d.text("provisioner"))
}

func isCinderSnapshotClass(d document) bool { return d.text("driver") == cluster.UpstreamName }

// storageClassRules are for the documentation.
var storageClassRules = []rule{
	{key: "the class", why: classStays},
	{key: "the class of provisioner " + inTreeProvisioner, why: inTreeStays},
	{key: "metadata.annotations is-default-class", to: "spec.storageClasses.default", why: "if it is true: your default class stays the only one"},
	{key: "metadata.name", to: "spec.storageClasses.namePrefix", why: "if it is that of the volume type: the bundle makes a class of that name too, and parameters of a class cannot change"},
	{key: "parameters", why: "those that the driver does not know are named: the driver of a bundle refuses the claims of such a class"},
}

func (p *proposal) readStorageClass(d document) error {
	inTree := d.text("provisioner") == inTreeProvisioner
	if inTree {
		p.note("provisioner", "", inTreeStays)
	} else {
		p.note("the class", "", classStays)
	}
	if d.annotation("storageclass.kubernetes.io/is-default-class") == "true" || d.annotation("storageclass.beta.kubernetes.io/is-default-class") == "true" {
		p.Spec.StorageClasses.Default = v1alpha1.None
		p.note("metadata.annotations is-default-class", "spec.storageClasses.default", "your default class stays the only one")
	}
	if name := d.name(); name != "" && name == d.text("parameters", contract.ParameterType) {
		p.Spec.StorageClasses.NamePrefix = ownPrefix
		p.note("metadata.name", "spec.storageClasses.namePrefix", storageClassRules[3].why[len("if "):])
	}
	parameters := d.texts("parameters")
	for _, key := range sortedFlags(parameters) {
		if strings.HasSuffix(key.name, "-secret-name") {
			p.note("parameters."+key.name, "", oneCloud)
		}
	}
	if inTree {
		return nil // Kubernetes translates them
	}
	_, unknown, err := contract.ParseStorageClass(parameters)
	p.tellParameters(unknown, err)
	return nil
}

// tellParameters names what the driver of a bundle, which is strict, refuses.
func (p *proposal) tellParameters(unknown []string, err error) {
	const refused = "the driver of a bundle refuses the claims and snapshots of this class; create another class without it"
	for _, key := range unknown {
		p.note("parameters."+key, "", "the driver has no such parameter. "+strings.ToUpper(refused[:1])+refused[1:])
	}
	if err != nil {
		p.note("parameters", "", "one of them has a value that the driver cannot read. "+strings.ToUpper(refused[:1])+refused[1:])
	}
}

// snapshotClassRules are for the documentation.
var snapshotClassRules = []rule{
	{key: "the class", why: classStays},
	{key: "metadata.annotations is-default-class", why: takeDefaultOf + "NAME " + noDefaultSnapshotClass},
	{key: "parameters", why: "those that the driver does not know are named: the driver of a bundle refuses the snapshots of such a class"},
}

const noDefaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class=false"

func (p *proposal) readSnapshotClass(d document) error {
	p.note("the class", "", classStays)
	if d.annotation("snapshot.storage.kubernetes.io/is-default-class") == "true" {
		p.note("metadata.annotations is-default-class", "", takeDefaultOf+d.name()+" "+noDefaultSnapshotClass)
	}
	_, unknown, err := contract.ParseSnapshotClass(d.texts("parameters"))
	p.tellParameters(unknown, err)
	return nil
}

func (d document) annotation(key string) string { return d.text("metadata", "annotations", key) }

// texts are the texts of a mapping at the top of the document.
func (d document) texts(key string) map[string]string {
	all := map[string]string{}
	fields, _ := d.yaml[key].(map[string]any)
	for name, v := range fields {
		all[name], _ = v.(string)
	}
	return all
}
