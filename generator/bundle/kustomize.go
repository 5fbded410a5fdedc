package bundle

import (
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/manifests"
)

// driverDir holds what is composed and patched. It is a kustomization of its own below the plane's, because every patch and
// component costs kustomize the square of the number of objects it could apply to: with 2,000 classes beside the patches a build
// took 15 s, with the classes above them a fraction of it.
const driverDir = "driver"

// kustomize adds the plane's overlay: what the cloud decides, above the driver.
func (p *plane) kustomize(t Tree, o Options) error {
	var resources []string
	own := func(name string, docs ...object) error {
		if len(docs) == 0 {
			return nil
		}
		resources = append(resources, name)
		return p.document(t, name, docs...)
	}
	if err := own("namespace.yaml", p.namespaces()...); err != nil {
		return err
	}
	if err := p.driver(t, o); err != nil {
		return err
	}
	resources = append(resources, driverDir)
	for name, docs := range p.ownObjects() {
		if err := own(name, docs...); err != nil {
			return err
		}
	}
	return p.document(t, "kustomization.yaml", kustomization(object{"resources": resources}))
}

// kustomization says its order explicitly, because kustomize's default has changed before: things as they are listed.
func kustomization(fields object) object {
	fields["apiVersion"], fields["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	fields["sortOptions"] = object{"order": "fifo"}
	return fields
}

// driver adds the driver's own objects: what it composes of manifests/, and what it changes there.
func (p *plane) driver(t Tree, o Options) error {
	refs := func(names []string) (list []string, err error) {
		for _, name := range names {
			ref, err := p.manifest(t, o, name)
			if err != nil {
				return nil, err
			}
			list = append(list, ref)
		}
		return list, nil
	}
	bases, err := refs(p.bases())
	if err != nil {
		return err
	}
	components, err := refs(p.components())
	if err != nil {
		return err
	}
	patches, err := p.writePatches(t)
	if err != nil {
		return err
	}
	images, err := p.images()
	if err != nil {
		return err
	}
	k := kustomization(object{"resources": bases, "patches": patches, "images": images})
	if len(components) > 0 {
		k["components"] = components
	}
	return p.document(t, driverDir+"/kustomization.yaml", k)
}

// bases are the parts of manifests/base that the plane is made of, rights before what uses them.
func (p *plane) bases() []string {
	var list []string
	if p.cluster {
		list = append(list, "base/rbac", "base/csidriver")
	}
	if p.controller {
		list = append(list, "base/controller")
	}
	if p.node {
		list = append(list, "base/node")
	}
	return list
}

// components are the features of the plane. One that adds to what another added comes after it.
func (p *plane) components() []string {
	var list []string
	add := func(when bool, names ...string) {
		if when {
			for _, n := range names {
				list = append(list, "components/"+n)
			}
		}
	}
	add(p.controller && p.snapshots(), "snapshots-controller")
	add(p.cluster && p.snapshots(), "snapshots-rbac")
	add(p.controller && p.ca() != "", "ca-controller")
	add(p.controller && p.r.PVCAnnotations.Value, "pvc-annotations-controller")
	add(p.controller && p.openShift(), "openshift-controller")
	add(p.node && p.openShift(), "openshift-node")
	add(p.controller && p.hosted(), "hypershift-controller")
	add(p.controller && p.hosted() && p.snapshots(), "snapshots-hypershift")
	add(p.cluster && p.hosted(), "hypershift-guest")
	add(p.cluster && p.r.LimitRefresh.Value > 0, "allocatable-refresh")
	return list
}

// manifest makes a part of manifests/ available to the overlay and returns the path it is found under.
func (p *plane) manifest(t Tree, o Options, name string) (string, error) {
	if o.Base != "" {
		return path.Join(p.up(path.Join("..", o.Base)), name), nil
	}
	err := fs.WalkDir(manifests.Files, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := manifests.Files.ReadFile(file)
		if err != nil {
			return err
		}
		t[path.Join(p.dir, driverDir, file)] = text
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", name, err)
	}
	return name, nil
}

// ownObjects yields the files of objects that no part of manifests/ has, because the cloud decides whether and how many there are.
// All classes are in one file: kustomize's time grows with the square of the number of files.
func (p *plane) ownObjects() func(yield func(string, []object) bool) {
	return func(yield func(string, []object) bool) {
		var classes []object
		if p.cluster {
			for _, c := range p.r.StorageClasses {
				classes = append(classes, p.storageClass(c.Value))
			}
		}
		if !yield("storageclasses.yaml", classes) {
			return
		}
		if p.cluster && p.snapshots() && !yield("snapshotclass.yaml", []object{p.snapshotClass()}) {
			return
		}
		if p.controller && p.ca() != "" && !yield("ca.yaml", []object{p.caConfigMap()}) {
			return
		}
		if p.controller && p.r.NetworkPolicy.Value.Enabled {
			yield("networkpolicy.yaml", []object{p.networkPolicy()})
		}
	}
}

// writePatches writes each patch as a file of its own and returns the kustomization's list of them.
func (p *plane) writePatches(t Tree) ([]object, error) {
	var list []object
	for _, patch := range p.patches() {
		if patch.body != nil {
			if err := p.document(t, driverDir+"/"+patch.file, patch.body); err != nil {
				return nil, err
			}
		} else {
			text, err := yaml.Marshal(patch.ops)
			if err != nil {
				return nil, err
			}
			t[path.Join(p.dir, driverDir, patch.file)] = text
		}
		list = append(list, object{"path": patch.file, "target": patch.target})
	}
	return list, nil
}
