package plan

import (
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// snapshotInUse is the Cinder microversion from which a volume in use can be snapshotted without force (Cinder's REST API
// microversion history, 3.66).
const snapshotInUse = "3.66"

const blockStorage = "block-storage"

func (d *decider) snapshotClass(driver string) Decision[SnapshotClass] {
	decision := Decision[SnapshotClass]{Source: sourceOf(d.given.Snapshots.Enabled != nil)}
	if !*d.spec.Snapshots.Enabled {
		decision.Reason = "spec.snapshots.enabled is false"
		return decision
	}
	// With the driver name of OpenShift's operator comes its default class, and with two every request without a class fails.
	name, _ := v1alpha1.SnapshotClassNames(driver)
	decision.Value = SnapshotClass{Enabled: true, Name: name, Default: (!d.openShift() || d.sideBySide()) && d.defaultSnapshotClass() == ""}
	versions := d.inv.VersionsOf(blockStorage)
	if !known(d, "services: versions of "+blockStorage, versions) {
		decision.Reason = "every Cinder makes snapshots; the versions of this one are not known, so volumes in use are assumed to need force"
		decision.Facts = []v1alpha1.NamedFact{stateOf(snapshotFact, versions)}
		why := "the cloud does not report them"
		if versions.State == v1alpha1.Denied {
			why = missingRight(snapshotFact, versions.Reason)
		}
		if len(d.unanswered) == 0 {
			d.warn("the versions of Cinder are not known, so snapshots of volumes in use are assumed to need force: %s", why)
		}
		return decision
	}
	if version := versions.Value.MaxMicroversion; version != "" && microversion(version)[0] < 0 {
		d.warn("Cinder reports the microversion %q, which is not a number: snapshots of volumes in use are assumed to need force", version)
	}
	decision.Value.InUse = atLeast(versions.Value.MaxMicroversion, snapshotInUse)
	decision.Facts = []v1alpha1.NamedFact{{Name: snapshotFact, Value: strconv.FormatBool(decision.Value.InUse)}}
	decision.Reason = "every Cinder makes snapshots; this one needs no force for volumes in use"
	if !decision.Value.InUse {
		decision.Reason = "every Cinder makes snapshots; this one needs force for volumes in use"
	}
	if name := d.defaultSnapshotClass(); name != "" {
		decision.Reason += "; spec.snapshots.classes." + name + " is the default class"
	}
	return decision
}

// atLeast compares microversions, "3.9" < "3.66"; any other text is below every microversion.
func atLeast(have, want string) bool {
	h, w := microversion(have), microversion(want)
	return h[0] > w[0] || h[0] == w[0] && h[1] >= w[1]
}

func microversion(s string) [2]int {
	major, minor, ok := strings.Cut(s, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	if !ok || errMajor != nil || errMinor != nil {
		return [2]int{-1, -1}
	}
	return [2]int{a, b}
}
