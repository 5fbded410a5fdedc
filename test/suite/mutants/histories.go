package mutants

import "github.com/cinder-csi/cinder-csi/test/kit/mutant"

// Histories are mutants of the driver of which test/suite/histories has a recorded history, mutants/NAME.json, that shows the broken rule. Those
// that a test of one package catches too, name it.
var Histories = []mutant.Mutant{
	{Name: "5xx-is-a-refusal", Rule: "after a 5xx the driver assumes that Cinder or Nova may have processed the request", Edits: []mutant.Edit{
		edit("driver/openstack", "answer.Actual < 400 || answer.Actual >= 500", "answer.Actual < 400"),
	}, CaughtBy: test("./driver/openstack", "^TestALostCreateTellsWhenItWasSent$")},
	{Name: "attach-during-lost-detach", Rule: "an attach waits while Nova may still complete a detach with an unknown outcome", Edits: []mutant.Edit{
		edit("driver/attach", "s.unconfirmedDetaches.remaining(id, server); left > 0", "s.unconfirmedDetaches.remaining(id, server); left > time.Hour"),
	}, CaughtBy: test("./driver/attach", "^TestAttachWaitsForAnUnconfirmedDetachFromTheSameServer$")},
	{Name: "attach-ok-when-accepted", Rule: "ControllerPublishVolume returns OK once Cinder shows the volume at the server", Edits: []mutant.Edit{
		edit("driver/attach", "if refusal == nil {", `if refusal == nil {
		return true, nil`),
	}, CaughtBy: test("./driver/attach", "^TestAttachReturnsOnceCinderShowsTheAttachment$")},
	{Name: "delete-backup-ok-when-accepted", Rule: "DeleteSnapshot of a backup returns OK once Cinder answers 404", Edits: []mutant.Edit{
		edit("driver/snapshot", "volume.AfterWrite(s.awaitBackupDeleted(ctx, id))", "nil"),
	}, CaughtBy: test("./driver/snapshot", "^TestDeleteBackupDeletesItsTemporarySnapshot$")},
	{Name: "delete-ok-when-accepted", Rule: "DeleteVolume returns OK once Cinder answers 404", Edits: []mutant.Edit{
		edit("driver/provision", "volume.AfterWrite(s.volumes.AwaitDeleted(ctx, id))", "nil"),
	}, CaughtBy: test("./driver/provision", "^TestDeleteReturnsOnceTheVolumeIsGone$")},
	{Name: "delete-snapshot-ok-when-accepted", Rule: "DeleteSnapshot returns OK once Cinder answers 404", Edits: []mutant.Edit{
		edit("driver/snapshot", "volume.AfterWrite(s.awaitSnapshotDeleted(ctx, id))", "nil"),
	}, CaughtBy: test("./driver/snapshot", "^TestDeleteInEveryStatus$")},
	{Name: "detach-does-not-outlast-attach", Rule: "a detach waits until Nova can no longer complete an attach with an unknown outcome", Edits: []mutant.Edit{
		edit("driver/attach", "left <= 0 || seen.nova == novaServerGone", "left <= time.Hour"),
	}, CaughtBy: test("./driver/attach", "^TestDetachNamesTheUnconfirmedAttachWhenTheCallerLeaves$")},
	{Name: "detach-ok-when-accepted", Rule: "ControllerUnpublishVolume returns OK once Cinder no longer shows the volume at the server", Edits: []mutant.Edit{
		edit("driver/attach", "v, detached, err := s.awaitDetached(", `return true, nil, nil
	v, detached, err := s.awaitDetached(`),
	}, CaughtBy: test("./driver/attach", "^TestADetachThatTheHostFailsIsAnError$")},
	{Name: "detach-without-nova", Rule: "ControllerUnpublishVolume returns OK once Nova no longer lists the volume for the server", Edits: []mutant.Edit{
		edit("driver/attach", "complete, err = s.awaitUnlisted(ctx, id, server)", "complete, err = true, nil"),
	}, CaughtBy: test("./driver/attach", "^TestADetachThatNovaNeverForgetsEndsWithTheRemedy$")},
	{Name: "expand-ok-when-accepted", Rule: "ControllerExpandVolume returns OK once Cinder shows the new size", Edits: []mutant.Edit{
		edit("driver/provision", "	v, err := s.awaitSize(", `	if v.Size = size; true {
		return v, nil
	}
	v, err := s.awaitSize(`),
	}, CaughtBy: test("./driver/provision", "^TestExpandThatFailsReturnsTheReason$")},
	{Name: "failed-extension-is-ok", Rule: "an expansion that Cinder failed is an error", Edits: []mutant.Edit{
		edit("driver/provision", "if err != nil || v.Size >= size && v.Status.Meaning().Extend == volume.Proceed {", `if err != nil || v.Size < size || v.Status.Meaning().Extend == volume.Proceed {
		v.Size = size`),
	}, CaughtBy: test("./driver/provision", "^TestExpandThatFailsReturnsTheReason$")},
	{Name: "failed-volume-stays", Rule: "the driver deletes a volume that Cinder failed to create before it returns the failure", Edits: []mutant.Edit{
		edit("driver/provision", `s.resource.Discard(ctx, v, "Cinder could not create it")`, "error(nil)"),
	}, CaughtBy: test("./driver/provision", "^TestCreateInEveryStatus$")},
	{Name: "final-without-looking", Rule: "the driver returns a final code only after a list shows no object of the name", Edits: []mutant.Edit{
		edit("driver/idempotent", "found, unread := r.List(ctx, name)", `return err
	found, unread := r.List(ctx, name)`),
	}, CaughtBy: test("./driver/provision", "^TestCreateIsNotFinalWhileAnotherVolumeHasTheName$")},
	{Name: "list-error-is-nothing", Rule: "a list that fails does not prove that no object exists", Edits: []mutant.Edit{
		edit("driver/idempotent", "case unread != nil:", `case unread != nil:
		return err`),
	}, CaughtBy: test("./driver/provision", "^TestCreateIsNotFinalWhereTheNameCannotBeReadAfterwards$")},
	{Name: "login-renewal-is-final", Rule: "the driver renews an expired token; its 401 is no answer to the request", Edits: []mutant.Edit{
		edit("internal/cloud", `AllowReauth: s.Token == ""`, "AllowReauth: false"),
	}, CaughtBy: test("./internal/cloud", "^TestAnExpiredTokenIsRenewedAndTheAnswerAfterItKeepsItsStatus$")},
	{Name: "lost-attach-forgotten", Rule: "the success of a repeated attach does not prove that the first one can no longer complete", Edits: []mutant.Edit{
		edit("driver/attach", "if !u.pending[targetOf(id, server)].resent {", "if true {"),
	}, CaughtBy: test("./driver/attach", "^TestDetachWaitsForAnUnconfirmedAttachThatWasSentAgain$")},
	{Name: "lost-reply-answered-finally", Rule: "CreateVolume returns a retryable code after a request with a lost answer", Edits: []mutant.Edit{
		edit("driver/rpc", "endsAtFinalCode[method] && volume.MayHaveWritten(err)", `endsAtFinalCode[method] && volume.MayHaveWritten(err) && method != "CreateVolume"`),
	}, CaughtBy: test("./driver/rpc", "^TestAnErrorIsFinalWhereItsCodeIs$")},
	{Name: "modify-ok-when-not-written", Rule: "ControllerModifyVolume returns OK only if Cinder has accepted the change", Edits: []mutant.Edit{
		edit("driver/provision", "err = s.cloud.AddMetadata(ctx, id, missing)", `if err = s.cloud.AddMetadata(ctx, id, missing); volume.Is(err, volume.Unavailable) {
		return nil
	}`),
	}},
	{Name: "names-not-read-again", Rule: "after its own create the driver lists the volumes of the name again", Edits: []mutant.Edit{
		edit("driver/provision", `}
	found, err := s.resource.Recheck(ctx, spec.Name, v, searched)`, `}
	return s.useOldest(ctx, spec, []volume.Volume{v}, v.ID)
	found, err := s.resource.Recheck(ctx, spec.Name, v, searched)`),
	}, CaughtBy: test("./driver/provision", "^TestCreateByTwoReplicasEndsWithOneVolume$")},
	{Name: "newest-wins", Rule: "of several objects of one name the driver uses the oldest", Edits: []mutant.Edit{
		edit("driver/idempotent", "x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)", "y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(y.ID, x.ID)"),
	}, CaughtBy: test("./driver/idempotent", "^TestADuplicateThatCinderRefusesToDeleteIsReported$")},
	{Name: "no-lock", Rule: "one call at a time works on an object", Edits: []mutant.Edit{
		edit("driver/inflight", "l.held[key]; ok && other.holders > 0 {", `l.held[key]; ok && verb == "" {`),
	}, CaughtBy: test("./driver/inflight", "^TestAKeyIsLockedUntilItIsUnlocked$")},
	{Name: "nova-request-unlocked", Rule: "a volume stays locked until Nova has answered, although the caller has left", Edits: []mutant.Edit{
		edit("driver/attach", "unlock := lock.Hand()", `lock.Hand()()
	unlock := func() {}`),
	}, CaughtBy: test("./driver/attach", "^TestDetachWaitsForAnAttachInNovaWhoseCallerHasLeft$")},
	{Name: "ok-while-creating", Rule: "CreateVolume returns OK once Cinder says available", Edits: []mutant.Edit{
		edit("driver/provision", `id := v.ID
	if v.Status`, `id := v.ID
	if v.Status == volume.Creating {
		return v, nil
	}
	if v.Status`),
	}, CaughtBy: test("./driver/provision", "^TestCreateReturnsOnceTheVolumeIsAvailable$")},
	{Name: "older-duplicate-is-deleted", Rule: "of several objects of one name the driver never deletes the oldest, because a call may have returned it", Edits: []mutant.Edit{
		edit("driver/idempotent", "x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)", "y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(y.ID, x.ID)"),
		edit("driver/idempotent", "case f.ID != created && !f.creation().surelyAfter(oldest.creation()):", "case false:"),
	}, CaughtBy: test("./driver/idempotent", "^TestADuplicateThatCinderRefusesToDeleteIsReported$")},
	{Name: "post-again-without-looking", Rule: "the driver does not send a create with an unknown outcome again while Cinder may still process it", Edits: []mutant.Edit{
		edit("driver/idempotent", "if !held {", `if !held || strings.HasPrefix(what, "volume ") {`),
	}, CaughtBy: test("./driver/idempotent", "^TestAnAnswerDoesNotShortenTheHoldOffOfALostAnswer$")},
	{Name: "refused-attach-is-ok", Rule: "the driver observes Cinder and Nova after a refusal of Nova, and never returns OK for the refusal itself", Edits: []mutant.Edit{
		edit("driver/attach", "if !volume.RefusedByState(refusal) && !outdated && !another {", `if volume.Is(refusal, volume.Busy) || volume.Is(refusal, volume.Conflict) {
		return true, nil
	}
	if !volume.RefusedByState(refusal) && !outdated && !another {`),
	}, CaughtBy: test("./driver/attach", "^TestAttachInEveryCell$")},
	{Name: "refused-delete-is-gone", Rule: "only a 404 for the volume itself proves that it is gone", Edits: []mutant.Edit{
		edit("driver/provision", `v, err := s.readDeletable(ctx, lock, id)
	if `, `v, err := s.readDeletable(ctx, lock, id)
	if volume.Is(err, volume.Unauthenticated) || volume.Is(err, volume.PermissionDenied) || volume.Is(err, volume.Unavailable) ||
		`),
	}},
	{Name: "restore-again-without-waiting", Rule: "the driver does not restore into a volume again while Cinder may still process an earlier restore", Edits: []mutant.Edit{
		edit("driver/provision", "const restoreHoldOff = 2 * time.Minute", "const restoreHoldOff = 0 * time.Minute"),
	}, CaughtBy: test("./driver/provision", "^TestAnotherReplicaContinuesARestore$")},
	{Name: "snapshot-post-again-without-looking", Rule: "the driver does not send a create of a snapshot or backup with an unknown outcome again while Cinder may still process it", Edits: []mutant.Edit{
		edit("driver/idempotent", "if !held {", `if !held || !strings.HasPrefix(what, "volume ") {`),
	}, CaughtBy: test("./driver/idempotent", "^TestACreateWithoutAnAnswerIsNotSentAgainForTwoMinutes$")},
	{Name: "temporary-snapshot-stays", Rule: "the driver deletes the temporary snapshot of a backup once the backup is available, has failed or is deleted", Edits: []mutant.Edit{
		edit("driver/snapshot", "(p) && p.ID != b.From {", "(p) && p.ID != b.From || b.Status == volume.Available {"),
	}, CaughtBy: test("./driver/snapshot", "^TestCreateBackupDeletesItsTemporarySnapshot$")},
	{Name: "timeout-is-a-refusal", Rule: "the driver assumes that Cinder may have processed a create without an answer", Edits: []mutant.Edit{
		edit("driver/openstack", "failure.Sent = !transport.NeverSent(err) && !sent.Never()", "failure.Sent = false"),
	}, CaughtBy: test("./driver/openstack", "^TestTheCallersContextAndTheRequestsTimeoutAreToldApart$")},
	{Name: "transport-repeats-post", Rule: "the transport does not repeat a write after a 5xx", Edits: []mutant.Edit{
		edit("driver/openstack/transport", "return isRead(req) && resp.StatusCode >= 500", "return resp.StatusCode >= 500"),
	}, CaughtBy: test("./driver/openstack/transport", "^TestRetryRepeatsOnlyWhatDidNoHarm$")},
	{Name: "write-after-broken-connection", Rule: "the transport does not repeat a write after a broken connection", Edits: []mutant.Edit{
		edit("driver/openstack/transport", "return isRead(req) || NeverSent(err)", "return true"),
	}, CaughtBy: test("./driver/openstack/transport", "^TestRetryRepeatsOnlyWhatDidNoHarm$")},
	{Name: "zone-tried-too-early", Rule: "the driver tries another zone only if nothing is left of the attempt before, and nothing can still appear", Edits: []mutant.Edit{
		edit("driver/provision", "volume.Is(err, volume.NotInZone) && !volume.MayHaveWritten(err)", "volume.Is(err, volume.NotInZone) || volume.Is(err, volume.Unavailable)"),
	}, CaughtBy: test("./driver/provision", "^TestCreateTriesTheNextZoneOnlyAfterNotInZone$")},
}
