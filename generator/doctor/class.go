package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// The annotations that make a class the default (Kubernetes, "Well-Known Labels, Annotations and Taints").
const (
	defaultClass         = "storageclass.kubernetes.io/is-default-class"
	defaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class"
)

func (c *clusterCheck) checkClasses(ctx context.Context) {
	before := len(c.report.Findings)
	gaps := len(c.report.NotChecked)
	c.checkStorageClasses(ctx)
	c.checkSnapshotClasses(ctx)
	if len(c.report.Findings) == before && len(c.report.NotChecked) == gaps {
		c.report.ok("cluster.classes", "the %d StorageClasses of the bundle collide with none that exists", len(c.Bundle.StorageClasses))
	}
}

func (c *clusterCheck) checkStorageClasses(ctx context.Context) {
	existing, err := cluster.List[storagev1.StorageClass](ctx, c.cluster, "/apis/storage.k8s.io/v1/storageclasses")
	if c.failed("the StorageClasses", err) {
		return
	}
	ours, ourDefault := map[string]storagev1.StorageClass{}, ""
	for _, s := range c.Bundle.StorageClasses {
		ours[s.Name] = s
		if cluster.IsDefaultClass(s) {
			ourDefault = s.Name
		}
	}
	for _, have := range existing {
		if names := migrate.RefusedParameters(have, c.Bundle.DriverName); names != "" {
			c.report.add("cluster.classes", Warning, "StorageClass "+have.Name+" has parameters that the driver does not take: "+names,
				"the driver of a bundle refuses new claims of this class", "create another class without them, and use that for new claims")
		}
		want, same := ours[have.Name]
		if same && !sameForever(have, want) {
			c.report.add("cluster.classes", Error, "StorageClass "+have.Name+" exists with another provisioner, parameter or policy", "Kubernetes does not change these fields, so it refuses the bundle",
				"set spec.storageClasses.namePrefix, or another name in spec.storageClasses.overrides")
		}
		if !same && ourDefault != "" && cluster.IsDefaultClass(have) {
			c.report.add("cluster.classes", Warning, "StorageClass "+have.Name+" is the default already, and the bundle makes "+ourDefault+" the default too",
				"of two defaults Kubernetes uses the newer one", "set spec.storageClasses.default to none, or remove the annotation "+defaultClass+" from "+have.Name)
		}
	}
}

// sameForever compares the fields of a class that cannot change (Kubernetes API, StorageClass).
func sameForever(a, b storagev1.StorageClass) bool {
	return a.Provisioner == b.Provisioner && maps.Equal(a.Parameters, b.Parameters) &&
		valueOr(a.ReclaimPolicy, "Delete") == valueOr(b.ReclaimPolicy, "Delete") &&
		valueOr(a.VolumeBindingMode, storagev1.VolumeBindingImmediate) == valueOr(b.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

func (c *clusterCheck) checkSnapshotClasses(ctx context.Context) {
	isDefault := func(s cluster.SnapshotClass) bool { return s.Metadata.Annotations[defaultSnapshotClass] == "true" }
	i := slices.IndexFunc(c.Bundle.SnapshotClasses, isDefault)
	if i < 0 {
		return
	}
	ours := c.Bundle.SnapshotClasses[i]
	existing, err := cluster.List[cluster.SnapshotClass](ctx, c.cluster, "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses")
	if errors.Is(err, cluster.ErrNotFound) || c.failed("the VolumeSnapshotClasses", err) {
		return // without the CRDs there is none
	}
	for _, have := range existing {
		if have.Metadata.Name != ours.Metadata.Name && have.Driver == ours.Driver && isDefault(have) {
			c.report.add("cluster.classes", Warning, "VolumeSnapshotClass "+have.Metadata.Name+" is the default of driver "+have.Driver+", and so is "+ours.Metadata.Name+" of the bundle",
				"with two defaults a snapshot that names no class fails", "remove the annotation "+defaultSnapshotClass+" from "+have.Metadata.Name)
		}
	}
}
