package histories

// mutants are the driver with one rule broken each. NAME.json in the directory mutants has the history that shows it (mutants/README.md).
var mutants = []mutant{
	{"5xx-is-a-refusal", "after a 5xx the driver assumes that Cinder or Nova may have processed the request", []edit{
		{"driver/openstack", "answer.Actual < 400 || answer.Actual >= 500", "answer.Actual < 400"},
	}},
	{"attach-during-lost-detach", "an attach waits while Nova may still complete a detach with an unknown outcome", []edit{
		{"driver/attach", "s.unconfirmedDetaches.remaining(id, server); left > 0", "s.unconfirmedDetaches.remaining(id, server); left > time.Hour"},
	}},
	{"attach-ok-when-accepted", "ControllerPublishVolume returns OK once Cinder shows the volume at the server", []edit{
		{"driver/attach", "if refusal == nil {", `if refusal == nil {
		return true, nil`},
	}},
	{"delete-backup-ok-when-accepted", "DeleteSnapshot of a backup returns OK once Cinder answers 404", []edit{
		{"driver/snapshot", "volume.AfterWrite(s.awaitBackupDeleted(ctx, id))", "nil"},
	}},
	{"delete-ok-when-accepted", "DeleteVolume returns OK once Cinder answers 404", []edit{
		{"driver/provision", "volume.AfterWrite(s.volumes.AwaitDeleted(ctx, id))", "nil"},
	}},
	{"delete-snapshot-ok-when-accepted", "DeleteSnapshot returns OK once Cinder answers 404", []edit{
		{"driver/snapshot", "volume.AfterWrite(s.awaitSnapshotDeleted(ctx, id))", "nil"},
	}},
	{"detach-does-not-outlast-attach", "a detach waits until Nova can no longer complete an attach with an unknown outcome", []edit{
		{"driver/attach", "left <= 0 || seen.nova == novaServerGone", "left <= time.Hour"},
	}},
	{"detach-ok-when-accepted", "ControllerUnpublishVolume returns OK once Cinder no longer shows the volume at the server", []edit{
		{"driver/attach", "if complete, err = s.awaitDetached(", `return true, nil, nil
	if complete, err = s.awaitDetached(`},
	}},
	{"detach-without-nova", "ControllerUnpublishVolume returns OK once Nova no longer lists the volume for the server", []edit{
		{"driver/attach", "complete, err = s.awaitUnlisted(ctx, id, server)", "complete, err = true, nil"},
	}},
	{"expand-ok-when-accepted", "ControllerExpandVolume returns OK once Cinder shows the new size", []edit{
		{"driver/provision", "if v, err = s.awaitSize(", `v.Size = size
	return v, nil
	if v, err = s.awaitSize(`},
	}},
	{"failed-extension-is-ok", "an expansion that Cinder failed is an error", []edit{
		{"driver/provision", "if err != nil || v.Size >= size && v.Status.Meaning().Extend == volume.Proceed {", `if err != nil || v.Size < size || v.Status.Meaning().Extend == volume.Proceed {
		v.Size = size`},
	}},
	{"failed-volume-stays", "the driver deletes a volume that Cinder failed to create before it returns the failure", []edit{
		{"driver/provision", `s.resource.Discard(ctx, v, "Cinder could not create it")`, "error(nil)"},
	}},
	{"final-without-looking", "the driver returns a final code only after a list shows no object of the name", []edit{
		{"driver/idempotent", "found, unread := r.List(ctx, name)", `return err
	found, unread := r.List(ctx, name)`},
	}},
	{"list-error-is-nothing", "a list that fails does not prove that no object exists", []edit{
		{"driver/idempotent", "case unread != nil:", `case unread != nil:
		return err`},
	}},
	{"login-renewal-is-final", "the driver renews an expired token; its 401 is no answer to the request", []edit{
		{"internal/cloud", `AllowReauth: s.Token == ""`, "AllowReauth: false"},
	}},
	{"lost-attach-forgotten", "the success of a repeated attach does not prove that the first one can no longer complete", []edit{
		{"driver/attach", "if !u.pending[targetOf(id, server)].resent {", "if true {"},
	}},
	{"lost-reply-answered-finally", "CreateVolume returns a retryable code after a request with a lost answer", []edit{
		{"driver/rpc", "endsAtFinalCode[method] && volume.MayHaveWritten(err)", `endsAtFinalCode[method] && volume.MayHaveWritten(err) && method != "CreateVolume"`},
	}},
	{"modify-ok-when-not-written", "ControllerModifyVolume returns OK only if Cinder has accepted the change", []edit{
		{"driver/provision", "err = s.cloud.AddMetadata(ctx, id, missing)", `if err = s.cloud.AddMetadata(ctx, id, missing); volume.Is(err, volume.Unavailable) {
		return nil
	}`},
	}},
	{"names-not-read-again", "after its own create the driver lists the volumes of the name again", []edit{
		{"driver/provision", `}
	found, err := s.resource.NamedWith(ctx, spec.Name, string(v.ID))`, `}
	return s.useOldest(ctx, spec, []volume.Volume{v}, v.ID)
	found, err := s.resource.NamedWith(ctx, spec.Name, string(v.ID))`},
	}},
	{"newest-wins", "of several objects of one name the driver uses the oldest", []edit{
		{"driver/idempotent", "x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)", "y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(y.ID, x.ID)"},
	}},
	{"no-lock", "one call at a time works on an object", []edit{
		{"driver/inflight", "l.held[key]; ok {", `l.held[key]; ok && verb == "" {`},
	}},
	{"nova-request-unlocked", "a volume stays locked until Nova has answered, although the caller has left", []edit{
		{"driver/attach", "unlock := s.locks.Share(inflight.VolumeKey(r.volume), r.verb)", `s.locks.Share(inflight.VolumeKey(r.volume), r.verb)()
	unlock := func() {}`},
	}},
	{"ok-while-creating", "CreateVolume returns OK once Cinder says available", []edit{
		{"driver/provision", `id := v.ID
	if v.Status`, `id := v.ID
	if v.Status == volume.Creating {
		return v, nil
	}
	if v.Status`},
	}},
	{"older-duplicate-is-deleted", "of several objects of one name the driver never deletes the oldest, because a call may have returned it", []edit{
		{"driver/idempotent", "x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID)", "y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(y.ID, x.ID)"},
		{"driver/idempotent", "case f.ID != created && !f.creation().surelyAfter(oldest.creation()):", "case false:"},
	}},
	{"post-again-without-looking", "the driver does not send a create with an unknown outcome again while Cinder may still process it", []edit{
		{"driver/idempotent", "if !held {", `if !held || strings.HasPrefix(what, "volume ") {`},
	}},
	{"refused-attach-is-ok", "the driver observes Cinder and Nova after a refusal of Nova, and never returns OK for the refusal itself", []edit{
		{"driver/attach", "if !volume.RefusedByState(refusal) && !outdated {", `if volume.Is(refusal, volume.Busy) || volume.Is(refusal, volume.Conflict) {
		return true, nil
	}
	if !volume.RefusedByState(refusal) && !outdated {`},
	}},
	{"refused-delete-is-gone", "only a 404 for the volume itself proves that it is gone", []edit{
		{"driver/provision", `v, err := s.readDeletable(ctx, id)
	if `, `v, err := s.readDeletable(ctx, id)
	if volume.Is(err, volume.Unauthenticated) || volume.Is(err, volume.PermissionDenied) || volume.Is(err, volume.Unavailable) ||
		`},
	}},
	{"restore-again-without-waiting", "the driver does not restore into a volume again while Cinder may still process an earlier restore", []edit{
		{"driver/provision", "const restoreHoldOff = 2 * time.Minute", "const restoreHoldOff = 0 * time.Minute"},
	}},
	{"snapshot-post-again-without-looking", "the driver does not send a create of a snapshot or backup with an unknown outcome again while Cinder may still process it", []edit{
		{"driver/idempotent", "if !held {", `if !held || !strings.HasPrefix(what, "volume ") {`},
	}},
	{"temporary-snapshot-stays", "the driver deletes the temporary snapshot of a backup once the backup is available, has failed or is deleted", []edit{
		{"driver/snapshot", "(p) && p.ID != b.From {", "(p) && p.ID != b.From || b.Status == volume.Available {"},
	}},
	{"timeout-is-a-refusal", "the driver assumes that Cinder may have processed a create without an answer", []edit{
		{"driver/openstack", "failure.Sent = !transport.NeverSent(err) && !sent.Never()", "failure.Sent = false"},
	}},
	{"transport-repeats-post", "the transport does not repeat a write after a 5xx", []edit{
		{"driver/openstack/transport", "return isRead(req) && resp.StatusCode >= 500", "return resp.StatusCode >= 500"},
	}},
	{"write-after-broken-connection", "the transport does not repeat a write after a broken connection", []edit{
		{"driver/openstack/transport", "return isRead(req) || NeverSent(err)", "return true"},
	}},
	{"zone-tried-too-early", "the driver tries another zone only if nothing is left of the attempt before, and nothing can still appear", []edit{
		{"driver/provision", "volume.Is(err, volume.NotInZone) && !volume.MayHaveWritten(err)", "volume.Is(err, volume.NotInZone) || volume.Is(err, volume.Unavailable)"},
	}},
}
