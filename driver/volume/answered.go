package volume

import (
	"context"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// A VolumeSnapshot's handle is the first id that external-snapshotter is answered with, ready or not; whatever it is answered later,
// an error or another id, it keeps that one (updateSnapshotContentStatus of 8.7). So what may have been answered with is marked in
// Cinder, where every replica sees it, and Create neither removes it nor makes another. An answer that is ready is the last, and needs
// no mark.

// answered reports whether Create may have been answered with p before it was ready.
func answered(p Snapshot) bool {
	_, ok := contract.ParseDescriptionOfAnswered(p.Description)
	return ok
}

// returnsOfFailed is how often Create returns the ID of a snapshot that failed after its ID was, or may have been, returned. Only then
// it returns the failure. external-snapshotter forgets a VolumeSnapshot that fails before it has an ID, so the ID must arrive even if the
// reply that carried it first was lost, and the next one too.
const returnsOfFailed = 3

// failedAfterAnswer returns nil, for Create to return the ID of p once more, or the final error that p failed. Each return is counted
// in Cinder before it is made, so that replicas and restarts do not start again.
func (s *Snapshots) failedAfterAnswer(ctx context.Context, k shelf, p Snapshot, reason string) error {
	returned, _ := contract.ParseDescriptionOfAnswered(p.Description)
	if returned >= returnsOfFailed {
		return keptAsHandle(k, p, reason)
	}
	err := k.describe(ctx, p.ID, contract.DescriptionOfFailed(returned+1))
	if err != nil && !MayHaveWritten(err) { // else this return may be counted, so it must be made
		return AfterWrite(Errorf(KindOf(err), "%s %s of volume %s failed%s; the driver cannot note in its description in Cinder that it returns the ID again, and retries: %w",
			k.noun, p.ID, p.Volume, reason, err).Op("snapshot"))
	}
	return nil
}

// answer gives p as Create's answer, once it is marked if it must be. What is not ours is never removed, and needs no mark.
func (s *Snapshots) answer(ctx context.Context, k shelf, p Snapshot) (Snapshot, error) {
	if p.Ready() || answered(p) || !s.ours(p) {
		return p, nil
	}
	err := k.describe(ctx, p.ID, contract.DescriptionAnswered)
	if err != nil && MayHaveWritten(err) && s.marked(ctx, k, p) {
		err = nil // only its answer was lost
	}
	switch {
	case Is(err, NotFound):
		return Snapshot{}, AfterWrite(Errorf(Busy, "%s %s was deleted by someone else while it was being created: %w", k.noun, p.ID, err).Op("snapshot"))
	case err != nil:
		return Snapshot{}, AfterWrite(Errorf(KindOf(err), "%s %s of volume %s is being made, and cannot be told of before it is ready, because that could not be noted in its "+
			"description in Cinder: %w", k.noun, p.ID, p.Volume, err).Op("snapshot"))
	}
	p.Description = contract.DescriptionAnswered
	return p, nil
}

// keptAsHandle is the answer about what Cinder gave up after Create was answered with it. It is final: nothing else exists, and a
// VolumeSnapshot whose handle is known can be deleted.
func keptAsHandle(k shelf, p Snapshot, reason string) error {
	verb := "make"
	if snapshotStatuses[p.Status].delete == refuse {
		verb = "delete"
	}
	return Errorf(Failed, "Cinder could not %s %s %s of volume %s%s; the VolumeSnapshot already uses this ID, so the driver does not create another: "+
		"delete the VolumeSnapshot and create a new one", verb, k.noun, p.ID, p.Volume, reason).Op("snapshot")
}

// marked reads whether p is marked by now.
func (s *Snapshots) marked(ctx context.Context, k shelf, p Snapshot) bool {
	found, err := k.named(ctx, p.Name)
	return err == nil && slices.ContainsFunc(found, func(f Snapshot) bool { return f.ID == p.ID && answered(f) })
}
