package migrate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// inTreeProvisioner is the name of the Cinder plugin that was a part of Kubernetes.
const inTreeProvisioner = "kubernetes.io/cinder"

// ownPrefix begins the names of a bundle's classes where a class has the name of its volume type.
const ownPrefix = "cinder-"

const (
	classStays    = "the class stays in the cluster as it is"
	inTreeStays   = "the class stays in the cluster as it is. Kubernetes gives its claims to the driver with the name " + cluster.UpstreamName + ", so the bundle must have that name (spec.driver.name)"
	takeDefaultOf = "if two classes of one driver are the default, a snapshot without a class fails. The bundle has one. Before the swap run: " +
		"kubectl annotate --overwrite volumesnapshotclass "
	snapshotClassKept = "the bundle has the class with the same name, parameters and deletion policy"
)

func isCinderClass(d document) bool {
	return slices.Contains([]string{cluster.UpstreamName, inTreeProvisioner}, d.text("provisioner"))
}

// storageClassRules are for the documentation.
var storageClassRules = []rule{
	{key: "the class", why: classStays},
	{key: "the class of provisioner " + inTreeProvisioner, why: inTreeStays},
	{key: "metadata.annotations is-default-class", to: "spec.storageClasses.default", why: "if it is true: your default class stays the only one"},
	{key: "metadata.name", to: "spec.storageClasses.namePrefix", why: "if it is that of the volume type: the bundle makes a class of that name too, and parameters of a class cannot change"},
	{key: "parameters", why: "those that the driver does not know are named: the driver of a bundle refuses the claims of such a class"},
	{key: "allowedTopologies", why: needsZones},
}

const needsZones = "the class stays as it is, and pods with its claims need nodes with these labels: keep spec.topology.mode enabled"

func (p *proposal) readStorageClass(d document) error {
	class, err := typed[storagev1.StorageClass](p, d)
	if err != nil {
		return err
	}
	if len(class.AllowedTopologies) > 0 {
		p.note("allowedTopologies", "", needsZones)
	}
	inTree := d.text("provisioner") == inTreeProvisioner
	if inTree {
		p.note("the class", "", inTreeStays)
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
	parameters := class.Parameters
	for _, key := range sortedFlags(parameters) {
		if strings.HasSuffix(key.name, "-secret-name") {
			p.note("parameters."+key.name, "", oneCloud)
		}
	}
	p.tellParameters(refusedParameters(parameters, inTree))
	return nil
}

// refusedParameters are what the driver of a bundle refuses in a class. Of an in-tree class Kubernetes translates the file system, in any
// spelling, and passes the other parameters on as they are written.
func refusedParameters(parameters map[string]string, inTree bool) ([]string, error) {
	var noFileSystem error
	if inTree {
		parameters = maps.Clone(parameters)
		for key, fsType := range parameters {
			if strings.EqualFold(key, "fstype") {
				delete(parameters, key)
				if !slices.Contains(contract.FileSystems, fsType) {
					noFileSystem = errType
				}
			}
		}
	}
	_, unknown, err := contract.ParseStorageClass(parameters)
	return unknown, cmp.Or(err, noFileSystem)
}

// RefusedParameters names the parameters of a class for which the driver refuses a claim. It is empty for a class of another driver.
func RefusedParameters(c storagev1.StorageClass, driver string) string {
	inTree := c.Provisioner == inTreeProvisioner && driver == cluster.UpstreamName
	if !inTree && c.Provisioner != driver {
		return ""
	}
	unknown, err := refusedParameters(c.Parameters, inTree)
	if err != nil {
		unknown = append(unknown, "a value that the driver cannot read")
	}
	return strings.Join(unknown, ", ")
}

// setCustomClasses reads the classes that a text of the values holds.
func setCustomClasses(p *proposal, v value) error {
	text, err := v.text()
	if err != nil {
		return err
	}
	isClass := func(d document) bool { return d.kind() == "StorageClass" && isCinderClass(d) }
	switch found, err := p.readInside(p.file+" storageClass.custom", text, isClass, p.readStorageClass); {
	case errors.Is(err, errInside):
		return leave("its text is no YAML of classes; these classes stay in the cluster as they are")
	case err != nil:
		return err
	case !found:
		return leave("it has no class of the driver")
	}
	p.to = "" // the notes of the classes say what they became
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

const noDefaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class=false"

// snapshotClassRules are for the documentation.
var snapshotClassRules = []rule{
	{key: "the class", to: "spec.snapshots.classes", why: snapshotClassKept},
	{key: "the class with objects of OpenShift, or with Secrets", why: classStays},
	{key: "the class with the name of one of the bundle", why: "the bundle changes it to its own"},
	{key: "metadata.annotations is-default-class", to: "spec.snapshots.classes.*.default", why: "if it is true. A second one is left out: " + takeDefaultOf + "NAME " + noDefaultSnapshotClass},
	{key: "parameters", why: "those that the driver does not know are named, and the class stays as it is: the driver of a bundle refuses its snapshots"},
}

// readSnapshotClass keeps a class in the configuration. One that the driver refuses is not the bundle's to change.
func (p *proposal) readSnapshotClass(d document) error {
	class, err := typed[struct {
		metav1.TypeMeta
		Metadata       metav1.ObjectMeta `json:"metadata"`
		Driver         string            `json:"driver"`
		DeletionPolicy string            `json:"deletionPolicy"`
		Parameters     map[string]string `json:"parameters"`
	}](p, d)
	if err != nil {
		return err
	}
	const key = "metadata.annotations is-default-class"
	parameters, isDefault := class.Parameters, d.annotation("snapshot.storage.kubernetes.io/is-default-class") == "true"
	_, unknown, err := contract.ParseSnapshotClass(parameters)
	snapshots, backups := v1alpha1.SnapshotClassNames(cluster.UpstreamName) // a proposal leaves the name of the driver as it is upstream
	secrets := slices.ContainsFunc(slices.Collect(maps.Keys(parameters)), func(name string) bool { return strings.HasSuffix(name, "-secret-name") })
	switch {
	case d.name() == snapshots || d.name() == backups:
		p.note("the class", "", snapshotClassRules[2].why)
		return nil
	case len(unknown) > 0 || err != nil || secrets || p.known.openShift:
		p.note("the class", "", classStays)
		if isDefault {
			p.note(key, "", takeDefaultOf+shell.Name(d.name(), "NAME")+" "+noDefaultSnapshotClass)
		}
		p.tellParameters(unknown, err)
		return nil
	}
	kept := v1alpha1.SnapshotClass{DeletionPolicy: class.DeletionPolicy, Parameters: parameters}
	p.note("the class", "spec.snapshots.classes", snapshotClassKept)
	first := cmp.Or(p.known.defaultSnapshotClass, d.name())
	switch {
	case isDefault && first != d.name():
		p.note(key, "", takeDefaultOf+shell.Name(d.name(), "NAME")+" "+noDefaultSnapshotClass)
	case isDefault:
		p.known.defaultSnapshotClass, kept.Default = first, true
		p.note(key, "spec.snapshots.classes."+first+".default", "")
	}
	p.Spec.Snapshots.Classes = map[string]v1alpha1.SnapshotClass{d.name(): kept}
	return nil
}

func (d document) annotation(key string) string { return d.text("metadata", "annotations", key) }
