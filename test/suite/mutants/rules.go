package mutants

import "github.com/cinder-csi/cinder-csi/test/kit/mutant"

// Rules are mutants that a test of one package catches within seconds, without root. A test of each breaks if somebody breaks its rule; keep both.
// To add one, write a row without a pattern: the program says which tests of the package fail. Name the subtest of a long table.
var Rules = []mutant.Mutant{
	{Name: "stale-other-status", Rule: "two observations of a stale attachment must show the same volume status", Edits: []mutant.Edit{
		edit("driver/attach", " && c.seen.volume.Status == now.volume.Status", ""),
	}, CaughtBy: test("./driver/attach", "^TestAnotherVolumeStatusAtTheSecondObservationNeedsAThird$")},
	{Name: "stale-confirmed-at-once", Rule: "ten seconds lie between the two observations of a stale attachment", Edits: []mutant.Edit{
		edit("driver/attach", "const staleConfirmInterval = 10 * time.Second", "const staleConfirmInterval = 0 * time.Second"),
	}, CaughtBy: test("./driver/attach", "^TestDetachInEveryCell$")},
	{Name: "stale-not-read-again", Rule: "the driver reads a stale attachment again before it deletes it", Edits: []mutant.Edit{
		edit("driver/attach", "err == nil && !a.Same(seen.attachment):", "err == nil && false:"),
	}, CaughtBy: test("./driver/attach", "^TestAnAttachmentThatChangesIsNotDeleted$")},
	{Name: "attach-cached-refusal-counts", Rule: "a refusal of an attach that was sent with an outdated reading does not count", Edits: []mutant.Edit{
		edit("driver/attach", "if !a.cached && !another {", "if !another {"),
	}, CaughtBy: test("./driver/attach", "^TestARefusalAfterACachedReadingIsRepeatedOnce$")},
	{Name: "multiattach-kept-by-host", Rule: "a multiattach volume in use again was not kept by the compute host", Edits: []mutant.Edit{
		edit("driver/attach", `case v.Status != volume.InUse || v.Multiattach:`, `case v.Status != volume.InUse:`),
	}, CaughtBy: test("./driver/attach", "^TestAMultiattachVolumeThatIsInUseAgainIsNotKeptByTheHost$")},
	{Name: "foreign-reservation-is-a-host", Rule: "an attachment without a server that has not reached a host is a reservation", Edits: []mutant.Edit{
		edit("driver/attach", "case slices.Contains(reachedHost, a.Status):", "case true:"),
	}, CaughtBy: test("./driver/attach", "^TestTheLogNamesAnAttachmentThatADetachKeeps$")},
	{Name: "unconfirmed-too-short", Rule: "Nova may complete an attach with a lost answer for 90 seconds", Edits: []mutant.Edit{
		edit("driver/attach", "const unconfirmedFor = 90*time.Second + volume.Lag", "const unconfirmedFor = 20 * time.Second"),
	}, CaughtBy: test("./driver/attach", "^TestAListThatAnUnconfirmedAttachExplainsIsAwaited$")},
	{Name: "unconfirmed-without-lag", Rule: "what Nova completes at the last moment shows later where a database lags", Edits: []mutant.Edit{
		edit("driver/attach", "const unconfirmedFor = 90*time.Second + volume.Lag", "const unconfirmedFor = 90 * time.Second"),
	}, CaughtBy: test("./driver/attach", "^TestDetachWaitsForAnUnconfirmedAttach$")},
	{Name: "duplicate-kept-for-now", Rule: "a duplicate whose DELETE fails for now is not left behind an OK", Edits: []mutant.Edit{
		edit("driver/idempotent", "case !Final(err): // the cloud failed", "case !Final(err) && ctx.Err() != nil: // the cloud failed"),
	}, CaughtBy: test("./driver/idempotent", "^TestADuplicateWhoseDeleteFailsForNowIsDeletedByTheRetry$")},
	{Name: "unmarked-server-kept", Rule: "a server without the required metadata is read each time", Edits: []mutant.Edit{
		edit("driver/attach", "return time.Now().Before(m.until[id])", "return true"),
	}, CaughtBy: test("./driver/attach", "^TestAMarkedServerIsReadOnceInTenMinutesAndAnotherEachTime$")},
	{Name: "queue-one-shorter", Rule: "as many requests wait for a server as Nova attaches disks", Edits: []mutant.Edit{
		edit("driver/attach", "const queueLimit = 25", "const queueLimit = 24"),
	}, CaughtBy: test("./driver/attach", "^TestAFullQueueAndALongWaitAreBusyAtOnce$")},
	{Name: "detach-all-forgets-unconfirmed", Rule: "a detach from all servers covers a server whose attach may still complete", Edits: []mutant.Edit{
		edit("driver/attach", "servers = append(servers, s.unconfirmedAttaches.servers(v.ID)...)", ""),
	}, CaughtBy: test("./driver/attach", "^TestDetachWaitsForAnUnconfirmedAttach$")},
	{Name: "nova-list-missing-is-empty", Rule: "a server whose list is missing is in an unknown state", Edits: []mutant.Edit{
		edit("driver/attach", `case listMissing || server.Status == "UNKNOWN":`, `case server.Status == "UNKNOWN":`),
	}, CaughtBy: test("./driver/attach", "^TestAStaleAttachmentStaysUnlessCinderAndNovaAgree$")},
	{Name: "cell-down-is-idle", Rule: "a server in status UNKNOWN may have the volume", Edits: []mutant.Edit{
		edit("driver/attach", `case listMissing || server.Status == "UNKNOWN":`, "case listMissing:"),
	}, CaughtBy: test("./driver/attach", "^TestAStaleAttachmentStaysUnlessCinderAndNovaAgree$")},
	{Name: "attach-conflict-forgotten", Rule: "the driver never attaches a volume to a server while another one keeps it", Edits: []mutant.Edit{
		edit("driver/attach", "case a.Server != server:", "case false:"),
	}, CaughtBy: test("./driver/attach", "^TestDetachOfAVolumeThatIsNotAttachedSucceeds$")},
	{Name: "failed-zone-again", Rule: "a create skips the zone in which an earlier call failed", Edits: []mutant.Edit{
		edit("driver/provision", `if zone != "" && zone == failedZone {`, `if zone == "" && zone == failedZone {`),
	}, CaughtBy: test("./driver/provision", "^TestCreateTwiceReturnsTheSameVolume$")},
	{Name: "quota-reserved-ignored", Rule: "reserved quota is not free", Edits: []mutant.Edit{
		edit("driver/provision", "q.Limit-q.InUse-q.Reserved", "q.Limit-q.InUse"),
	}, CaughtBy: test("./driver/provision", "^TestCapacity$")},
	{Name: "cached-delete-refusal-returned", Rule: "a refused delete that was sent without a reading is checked against a fresh one", Edits: []mutant.Edit{
		edit("driver/provision", "s.delete(ctx, lock, id); volume.MayHaveWritten(err) || !volume.RefusedByState(err) && !volume.Is(err, volume.NotFound) {", "s.delete(ctx, lock, id); true {"),
	}, CaughtBy: test("./driver/provision", "^TestADeleteSoonAfterAnotherCallReadsAVolumeThatHasChanged$")},
	{Name: "cached-expand-refusal-returned", Rule: "a refused expansion that was sent without a reading is checked against a fresh one", Edits: []mutant.Edit{
		edit("driver/provision", "v, err = s.extend(ctx, lock, v, size); volume.MayHaveWritten(err) || !volume.RefusedByState(err) {", "v, err = s.extend(ctx, lock, v, size); true {"),
	}, CaughtBy: test("./driver/provision", "^TestAnExpansionSoonAfterAnotherCallReadsAVolumeThatHasChanged$")},
	{Name: "delete-attached", Rule: "an attached volume is not deleted", Edits: []mutant.Edit{
		edit("driver/provision", `	case len(v.Attachments) > 0:
		return v, stillAttached(v)
`, ""),
	}, CaughtBy: test("./driver/provision", "^TestDeleteOfAnAttachedVolumeNamesTheServers$")},
	{Name: "lock-after-a-wait-ignored", Rule: "a call that has waited goes on with the lock of the volume alone", Edits: []mutant.Edit{
		edit("driver/provision", "\tchanged, err := lock.Lock()\n\tif err == nil && changed {", "\tchanged, err := lock.Lock()\n\tif err = nil; changed {"),
	}, CaughtBy: test("./driver/provision", "^TestACallThatHasWaitedIsBusyWhileAnotherHasTheLock$")},
	{Name: "failed-volume-in-use-deleted", Rule: "the driver deletes no failed volume that a server uses", Edits: []mutant.Edit{
		edit("driver/provision", "s.createdForName(v) && len(v.Attachments) == 0", "s.createdForName(v)"),
	}, CaughtBy: test("./driver/provision", "^TestCreateNeverDeletesAFailedVolumeThatItDoesNotOwn$")},
	{Name: "driver-failed-is-exhausted", Rule: "a failed backend is no full quota", Edits: []mutant.Edit{
		edit("driver/provision", `case strings.Contains(reason, "Driver failed"):`, `case strings.Contains(reason, "Driver failed") && false:`),
	}, CaughtBy: test("./driver/provision", "^TestCreateIsNotFinalWhileAnotherVolumeHasTheName$")},
	{Name: "zone-after-write", Rule: "another zone is tried only if nothing is left of the attempt before", Edits: []mutant.Edit{
		edit("driver/provision", "volume.Is(err, volume.NotInZone) && !volume.MayHaveWritten(err)", "volume.Is(err, volume.NotInZone)"),
	}, CaughtBy: test("./driver/provision", "^TestCreateTriesNoOtherZoneAfterALostAnswer$")},
	{Name: "retype-with-snapshots", Rule: "a retype that would never end is refused", Edits: []mutant.Edit{
		edit("driver/provision", "return len(p.Metadata) > 0 })", "return false })"),
	}, CaughtBy: test("./driver/provision", "^TestModifyRefuses$")},
	{Name: "restore-metadata-always", Rule: "a volume that has its metadata is not written again", Edits: []mutant.Edit{
		edit("driver/provision", "if len(own) == 0 {", "if len(own) == 0 && false {"),
	}, CaughtBy: test("./driver/provision", "^TestCreateFromABackup$")},
	{Name: "unready-volume-returned-in-other-zone", Rule: "a volume that an earlier call may have returned is not deleted for its zone", Edits: []mutant.Edit{
		edit("driver/provision", `if d.discard != "" {`, `if d.discard == "" {`),
	}, CaughtBy: test("./driver/provision", "^TestCreateWithAVolumeThatDiffersIsIncompatible$")},
	{Name: "expand-being-extended", Rule: "an expansion of a volume that changes waits", Edits: []mutant.Edit{
		edit("driver/provision", "case v.Size >= size:", "case v.Size > 0:"),
	}, CaughtBy: test("./driver/provision", "^TestExpandReturnsOnceCinderShowsTheSize$")},
	{Name: "clocks-unbounded", Rule: "a creation time before the request proves a wrong clock", Edits: []mutant.Edit{
		edit("driver/idempotent", "took >= -clockTolerance && ", ""),
	}, CaughtBy: test("./driver/idempotent", "^TestAYoungerVolumeThatACallMayHaveReturnedIsKeptAndReported$")},
	{Name: "hold-off-from-answer", Rule: "the hold-off of a create is counted from the request", Edits: []mutant.Edit{
		edit("driver/idempotent", "entry := holdOff{until: sent.Add(createHoldOff),", "entry := holdOff{until: time.Now().Add(createHoldOff),"),
	}, CaughtBy: test("./driver/idempotent", "^TestTheHoldOffBeginsWhenTheRequestWasSent$")},
	{Name: "hold-off-shortened", Rule: "the hold-off that ends last stays", Edits: []mutant.Edit{
		edit("driver/idempotent", "before.until.After(entry.until)", "before.until.Before(entry.until)"),
	}, CaughtBy: test("./driver/idempotent", "^TestAnAnswerDoesNotShortenTheHoldOffOfALostAnswer$")},
	{Name: "temporary-snapshot-after-refusal", Rule: "nothing is left after Cinder refuses a backup", Edits: []mutant.Edit{
		edit("driver/snapshot", `return "", s.discardTemporary(ctx, temporary, err)`, `return "", err`),
	}, CaughtBy: test("./driver/snapshot", "^TestCreateBackupErrorsAreFinalOnlyWhereNothingExists$")},
	{Name: "backup-delete-404-is-gone", Rule: "a refused delete does not prove that a backup is gone", Edits: []mutant.Edit{
		edit("driver/snapshot", `case volume.InvalidArgument, volume.Conflict, volume.NotFound:
	default:`, `case volume.InvalidArgument, volume.Conflict:
	default:`),
	}, CaughtBy: test("./driver/snapshot", "^TestDeleteBackup$")},
	{Name: "unnamed-backup-cleaned", Rule: "a backup without a name has no temporary snapshot", Edits: []mutant.Edit{
		edit("driver/snapshot", `if b.Name == "" {`, "if false {"),
	}, CaughtBy: test("./driver/snapshot", "^TestDeleteBackup$")},
	{Name: "later-base", Rule: "Cinder bases an incremental backup on data from before the snapshot", Edits: []mutant.Edit{
		edit("driver/snapshot", "if b.DataAt.Before(end) {", "if true {"),
	}, CaughtBy: test("./driver/snapshot", "^TestCreateIncrementalBackupNeedsTheLatestBackup$")},
	{Name: "backup-wait-too-long", Rule: "a call waits ten seconds for a backup", Edits: []mutant.Edit{
		edit("driver/snapshot", "const longestBackupWait = 10 * time.Second", "const longestBackupWait = 100 * time.Second"),
	}, CaughtBy: test("./driver/snapshot", "^TestCreateBackupWaitsUntilItIsTenSecondsOld$")},
	{Name: "backup-read-too-long", Rule: "a call waits a minute for a backup whose status it cannot read", Edits: []mutant.Edit{
		edit("driver/snapshot", "const longestBackupRead = time.Minute", "const longestBackupRead = time.Hour"),
	}, CaughtBy: test("./driver/snapshot", "^TestABackupThatCannotBeReadIsNotCalledCreating$")},
	{Name: "second-ceph-backup", Rule: "Ceph keeps one backup of a snapshot for each volume", Edits: []mutant.Edit{
		edit("driver/snapshot", "return b.InCeph(), b.Ready() || !b.MayBeInCeph()", "return false, b.Ready() || !b.MayBeInCeph()"),
	}, CaughtBy: test("./driver/snapshot", "^TestTheDeleteOfAFailedBackupNeverDeletesTheDataOfAnother$")},
	{Name: "500-has-no-kind", Rule: "a status of 500 is a failure of the cloud", Edits: []mutant.Edit{
		edit("driver/openstack", "	if status >= 500 {", "	if status > 500 {"),
	}, CaughtBy: test("./driver/openstack", "^TestAnswersHaveTheirKind$")},
	{Name: "server-error-not-sent", Rule: "after a 500 the write may still succeed", Edits: []mutant.Edit{
		edit("driver/openstack", "answer.Actual < 400 || answer.Actual >= 500", "answer.Actual < 400 || answer.Actual > 500"),
	}, CaughtBy: test("./driver/openstack", "^TestOnlyAnAnswerOfTheServiceEndsARequest$")},
	{Name: "retry-after-shortened", Rule: "a shorter Retry-After does not shorten a pause", Edits: []mutant.Edit{
		edit("driver/openstack/transport", `l.paused = later(l.paused, until)
	l.free = later(l.free, until)`, "l.paused, l.free = until, until"),
	}, CaughtBy: test("./driver/openstack/transport", "^TestAShorterRetryAfterDoesNotShortenAPause$")},
	{Name: "complaint-keeps-rate", Rule: "a complaint of the cloud halves the rate", Edits: []mutant.Edit{
		edit("driver/openstack/transport", "min(l.rate, l.full)/2", "min(l.rate, l.full)"),
	}, CaughtBy: test("./driver/openstack/transport", "^TestAQueueFollowsTheRateThatRecovers$")},
	{Name: "class-before-mutable", Rule: "mutable parameters override those of the class", Edits: []mutant.Edit{
		edit("driver/controller", "cmp.Or(attributes.Type, class.Type)", "cmp.Or(class.Type, attributes.Type)"),
	}, CaughtBy: test("./driver/controller", "^TestMutableParametersOverrideTheStorageClass$")},
	{Name: "modify-ends-at-no-code", Rule: "an answer to ControllerModifyVolume after a write is never final", Edits: []mutant.Edit{
		edit("driver/rpc", `"ControllerExpandVolume": true, "ControllerModifyVolume": true,`, `"ControllerExpandVolume": true,`),
	}, CaughtBy: test("./driver/rpc", "^TestNoRPCEndsAtAFinalCodeAfterAWrite$")},
	{Name: "publish-ends-at-no-code", Rule: "an answer to ControllerPublishVolume after a write is never final", Edits: []mutant.Edit{
		edit("driver/rpc", `"ControllerPublishVolume": true, `, ""),
	}, CaughtBy: test("./driver/rpc", "^TestNoRPCEndsAtAFinalCodeAfterAWrite$")},
	{Name: "mount-without-verify", Rule: "a disk is verified again just before it is mounted", Edits: []mutant.Edit{
		edit("driver/host", `	if err := d.Verify(ctx); err != nil {
		return err
	}
	if fsType == "btrfs" {`, `	if fsType == "btrfs" {`),
	}, CaughtBy: test("./driver/host", "^TestADiskExchangedBeforeEachUseIsRefused$")},
	{Name: "wrong-mount-stays", Rule: "a mount of another disk is unmounted again", Edits: []mutant.Edit{
		edit("driver/host", "return errors.Join(err, h.mounts.UnmountTop(path))", "return errors.Join(err)"),
	}, CaughtBy: test("./driver/host", "^TestAMountThatLostItsSELinuxContextIsAnError$")},
	{Name: "mount-believed", Rule: "the mount table decides what was mounted", Edits: []mutant.Edit{
		edit("driver/host", `	if !mounted.On(d.Number) {
		return volume.Errorf(volume.Conflict, "%s volume`, `	if false {
		return volume.Errorf(volume.Conflict, "%s volume`),
	}, CaughtBy: test("./driver/host", "^TestStageBelievesTheMountTableAndNotTheMount$")},
	{Name: "superblock-not-checked-again", Rule: "the superblock is checked again after fsck", Edits: []mutant.Edit{
		edit("driver/host", "return fs.CheckSingleDevice(d, id, fsType) // again", "return nil // again"),
	}, CaughtBy: test("./driver/host", "^TestTheSuperblockIsCheckedAgainAfterFsck$")},
	{Name: "read-only-stage-published-writable", Rule: "a read-only staging is published read-only", Edits: []mutant.Edit{
		edit("driver/host", "readOnly := p.ReadOnly || staged.ReadOnly()", "readOnly := p.ReadOnly"),
	}, CaughtBy: test("./driver/host", "^TestAReadOnlyStageIsPublishedReadOnly$")},
	{Name: "one-user-allows-unstage", Rule: "a volume in use elsewhere is not unstaged", Edits: []mutant.Edit{
		edit("driver/host", `len(paths) > 0 {
		return volume.Errorf(volume.Busy, "unstage`, `len(paths) > 1 {
		return volume.Errorf(volume.Busy, "unstage`),
	}, CaughtBy: test("./driver/host", "^TestAVolumeWithAnUnresponsiveDiskIsUnstaged$")},
	{Name: "fsck-of-a-read-only-stage", Rule: "a read-only stage repairs nothing", Edits: []mutant.Edit{
		edit("driver/host", "d, found.FSType, !readOnly && !mounted)", "d, found.FSType, !mounted)"),
	}, CaughtBy: test("./driver/host", "^TestStageMakesAFileSystemOnlyOnAnEmptyDisk$")},
	{Name: "fsck-beside-a-mount", Rule: "nothing repairs a file system that is mounted", Edits: []mutant.Edit{
		edit("driver/host", "d, found.FSType, !readOnly && !mounted)", "d, found.FSType, !readOnly)"),
	}, CaughtBy: test("./driver/host", "^TestAMountedDiskIsNotChecked$")},
	{Name: "silent-disk-staged", Rule: "a disk that does not answer is not staged", Edits: []mutant.Edit{
		edit("driver/host", `	if err := h.answers(ctx, "stage volume "+string(s.Volume), d); err != nil {
		return "", err
	}
`, ""),
	}, CaughtBy: test("./driver/host", "^TestStageOfADiskThatDoesNotAnswerEnds$")},
	{Name: "no-rescan", Rule: "the driver reads a disk after a rescan", Edits: []mutant.Edit{
		edit("driver/host", `	if err := d.Rescan(ctx); err != nil { // before the size or the file system is called wrong
		return "", err
	}
`, ""),
	}, CaughtBy: test("./driver/host", "^TestADiskWithoutSizeIsRescannedAndThenUsed$")},
	{Name: "format-of-a-source", Rule: "a volume from a source is never formatted", Edits: []mutant.Edit{
		edit("driver/host", "case makeOne && s.FromSource:", "case makeOne && s.FromSource && false:"),
	}, CaughtBy: test("./driver/host", "^TestNoFileSystemIsMadeOnADiskThatMayHoldData$")},
	{Name: "other-content-formatted", Rule: "a disk that holds anything else is refused", Edits: []mutant.Edit{
		edit("driver/host", `case found.Other != "":`, "case false:"),
	}, CaughtBy: test("./driver/host", "^TestNoFileSystemIsMadeOnADiskThatMayHoldData$")},
	{Name: "staged-read-only-serves-writer", Rule: "a read-only staging serves no writable request", Edits: []mutant.Edit{
		edit("driver/host", "case staged.ReadOnly() && !readOnly:", "case false:"),
	}, CaughtBy: test("./driver/host", "^TestStageRefusesAnotherMountAtThePath$")},
	{Name: "full-target-file", Rule: "a block volume is bound only over an empty file", Edits: []mutant.Edit{
		edit("driver/host", "!info.Mode().IsRegular() || info.Size() != 0 {", "!info.Mode().IsRegular() {"),
	}, CaughtBy: test("./driver/host", "^TestABlockTargetThatIsNotEmptyIsRefused$")},
	{Name: "read-only-volume-grown", Rule: "a file system that is mounted read-only is not grown", Edits: []mutant.Edit{
		edit("driver/host", "if mounted.ReadOnly() {", "if false {"),
	}, CaughtBy: test("./driver/host", "^TestExpandNeverGrowsAnotherFileSystem$")},
	{Name: "short-tail", Rule: "a short read of the end of a disk is an error", Edits: []mutant.Edit{
		edit("driver/host/fs", "if err == nil && n != tail {", "if err == nil && n != tail && false {"),
	}, CaughtBy: test("./driver/host", "^TestNoFileSystemIsMadeOnADiskThatMayHoldData$")},
	{Name: "fsck-5-accepted", Rule: "a file system with errors left is not mounted", Edits: []mutant.Edit{
		edit("driver/host/fs", "case result.Code&fsckUncorrected != 0:", "case result.Code == fsckUncorrected:"),
	}, CaughtBy: test("./driver/host", "^TestFsckDecidesWhetherADamagedFileSystemIsMounted$")},
	{Name: "format-without-verify", Rule: "a disk is verified just before it is formatted", Edits: []mutant.Edit{
		edit("driver/host/fs", `	if err := d.Verify(ctx); err != nil {
		return err
	}
	if t.inUse(d.Path) {`, "	if t.inUse(d.Path) {"),
	}, CaughtBy: test("./driver/host", "^TestADiskExchangedBeforeEachUseIsRefused$")},
	{Name: "wipefs-failure-is-empty", Rule: "a failure of wipefs does not prove an empty disk", Edits: []mutant.Edit{
		edit("driver/host/fs", "if signatures.Code != 0 {", "if false {"),
	}, CaughtBy: test("./driver/host", "^TestNoFileSystemIsMadeOnADiskThatMayHoldData$")},
	{Name: "mkfs-canceled", Rule: "mkfs runs to its end even if its caller leaves", Edits: []mutant.Edit{
		edit("driver/host/fs", "command.Ask(context.WithoutCancel(ctx), t.run, mkfs[0],", "command.Ask(ctx, t.run, mkfs[0],"),
	}, CaughtBy: test("./driver/host", "^TestAProgramThatWritesContinuesWhenTheContextEnds$")},
	{Name: "nvme-short-serial", Rule: "of an NVMe disk the whole serial counts", Edits: []mutant.Edit{
		edit("driver/host/disk", `if s.Whole != "" {`, "if false {"),
	}, CaughtBy: test("./driver/host/disk", "^TestOfAnNVMeDiskTheWholeSerialCounts$")},
	{Name: "serial-prefix-too-short", Rule: "a serial is an ID or its first 20 characters", Edits: []mutant.Edit{
		edit("driver/host/disk", "serial == string(id[:shortSerial]))", "strings.HasPrefix(string(id), serial))"),
	}, CaughtBy: test("./driver/host/disk", "^TestFindIgnoresDisksOfOtherVolumes$")},
	{Name: "system-disk-takes-a-slot", Rule: "the disk of the machine is no volume", Edits: []mutant.Edit{
		edit("driver/host/limit", `		case machine:
			used.system = append(used.system, below(m)...)`, "		case machine:"),
	}, CaughtBy: test("./driver/host/limit", "^TestTheCountIsStableWhileDisksAreUnresponsive$")},
	{Name: "file-under-a-mount-removed", Rule: "unmount removes no file that holds data", Edits: []mutant.Edit{
		edit("driver/host/mount", " || info.Size() != 0) {", ") {"),
	}, CaughtBy: test("./driver/host/mount", "^TestUnmountRemovesOnlyAnEmptyMountPoint$")},
	{Name: "limit-zero", Rule: "an attach limit is never zero", Edits: []mutant.Edit{
		edit("driver/node", "-reserve, 1), source", "-reserve, 0), source"),
	}, CaughtBy: test("./driver/node", "^TestAnUnsetAttachLimitIsComputedAndNeverZero$")},
	{Name: "zone-of-another-server", Rule: "the recorded zone counts only for its server", Edits: []mutant.Edit{
		edit("driver/node", "first.Server == server && ", ""),
	}, CaughtBy: test("./driver/node", "^TestAMovedServerKeepsTheZoneOfTheNode$")},
	{Name: "no-grace", Rule: "a call whose operation ends just after its deadline hears the answer", Edits: []mutant.Edit{
		edit("driver/node", "const grace = 500 * time.Millisecond", "const grace = 0 * time.Millisecond"),
	}, CaughtBy: test("./driver/node", "^TestAnOperationThatEndsWithItsContextReturnsItsOwnError$")},
	{Name: "two-operations", Rule: "one operation at a time works on a volume", Edits: []mutant.Edit{
		edit("driver/node", "if other, busy := operations[id]; busy {", "if other, busy := operations[id]; busy && false {"),
	}, CaughtBy: test("./driver/node", "^TestOneOperationAtATimePerVolume$")},
	{Name: "zone-map-ignored", Rule: "spec.topology.zoneMap names the volume zone of a compute zone", Edits: []mutant.Edit{
		edit("generator/plan", "if mapped, ok := d.spec.Topology.ZoneMap[compute]; ok {", "if mapped, ok := d.spec.Topology.ZoneMap[compute]; ok && false {"),
	}, CaughtBy: test("./generator/plan", "^TestTopologyIsEnabledIfAndOnlyIfEveryComputeZoneIsAVolumeZone$")},
	{Name: "own-type-has-a-class", Rule: "the type that Cinder makes for itself gets no class", Edits: []mutant.Edit{
		edit("generator/plan", "if t.Name == cinderOwnType && defaultType != cinderOwnType {", "if false {"),
	}, CaughtBy: test("./generator/plan", "^TestWhichTypesGetAClassAndWhichIsTheDefault$")},
	{Name: "force-accepts-all", Rule: "--force allows nothing that needs --accept", Edits: []mutant.Edit{
		edit("generator/guard", "slices.Contains(accept, c.Accept) || c.Force && force", "slices.Contains(accept, c.Accept) || force"),
	}, CaughtBy: test("./generator/guard", "^TestForceAllowsNothingThatNeedsAcceptButAnotherCloud$")},
	{Name: "type-by-name-beside-its-id", Rule: "a class follows the ID of its volume type", Edits: []mutant.Edit{
		edit("generator/guard", `k.VolumeType.ID == "" && t.Name == k.typeName()`, "t.Name == k.typeName()"),
	}, CaughtBy: test("./generator/guard", "^TestATypeThatIsAnotherOneUnderItsNameIsReported$")},
	{Name: "plan-written-early", Rule: "plan.yaml is written last", Edits: []mutant.Edit{
		edit("generator/worktree", "func(c FileChange) bool { return c.Path != PlanFile }", "func(c FileChange) bool { return true }"),
	}, CaughtBy: test("./generator/worktree", "^TestTheOldPlanStaysUntilEverythingElseIsDone$")},
	{Name: "http-is-443", Rule: "an endpoint without a port has that of its scheme", Edits: []mutant.Edit{
		edit("generator/inspect", "return bare, 80", "return bare, 443"),
	}, CaughtBy: test("./generator/inspect", "^TestAMemberSeesZonesTypesLimitsAndQuota$")},
	{Name: "redirect-to-plain-http", Rule: "a redirect from https to http is not followed", Edits: []mutant.Edit{
		edit("internal/cloud", "req.URL.Scheme != from.URL.Scheme || ", ""),
	}, CaughtBy: test("./internal/cloud", "^TestARedirectFromHTTPSToHTTPCarriesNoToken$")},
	{Name: "caller-fails-login-for-all", Rule: "a caller that gave up says nothing about the cloud", Edits: []mutant.Edit{
		edit("internal/cloud", "case ctx.Err() == nil: // a caller", "case err != nil: // a caller"),
	}, CaughtBy: test("./internal/cloud", "^TestACallerThatGivesUpWhileItLogsInFailsNobodyElse$")},
	{Name: "login-again-at-once", Rule: "after a failed login the driver pauses", Edits: []mutant.Edit{
		edit("internal/cloud", "time.Since(l.since) < loginPause:", "time.Since(l.since) < 0:"),
	}, CaughtBy: test("./internal/cloud", "^TestLiveLogsInOnceAndRemembersAFailureForAMoment$")},
	{Name: "reload-keeps-failure", Rule: "new settings end the pause after a failed login", Edits: []mutant.Edit{
		edit("internal/cloud", `l.wanted, l.failed = now, nil`, `l.wanted = now`),
	}, CaughtBy: test("./internal/cloud", "^TestLiveTakesWhatCanBeReadBeforeItsFirstLogin$")},
	{Name: "region-not-compared", Rule: "endpoints of another region are not used", Edits: []mutant.Edit{
		edit("internal/cloud", "Region != e.Region && ", "Region != e.Region || "),
	}, CaughtBy: test("./internal/cloud", "^TestUnencryptedCatalogURLsAreReported$")},
	{Name: "401-is-unreachable", Rule: "a refused credential is no outage", Edits: []mutant.Edit{
		edit("internal/cluster", "case status == http.StatusUnauthorized, status == http.StatusForbidden:", "case status == http.StatusForbidden:"),
	}, CaughtBy: test("./internal/cluster", "^TestAnErrorNamesThePathTheClusterAndTheReason$")},
	{Name: "endless-list", Rule: "a list whose continue token repeats is an error", Edits: []mutant.Edit{
		edit("internal/cluster", `case query.Get("continue"): //`, `case "\x00": //`),
	}, CaughtBy: test("./internal/cluster", "^TestAListWhoseContinueTokenRepeatsIsAnError$")},
	{Name: "pod-that-runs-first", Rule: "the pod that waits explains a volume", Edits: []mutant.Edit{
		edit("internal/diagnosis", "rank(p) > rank(*best)", "rank(p) < rank(*best)"),
	}, CaughtBy: test("./internal/diagnosis", "^TestEachRecordedHangIsNamedWithItsCause$")},
	{Name: "bind-failure-ignored", Rule: "a failed bind is an error", Edits: []mutant.Edit{
		edit("driver/host/mount", `return volume.Errorf(volume.Failed, "bind %s at %s: %w", source, target, err).Cause(cause.MountFailed)`, "return nil"),
	}, CaughtBy: test("./driver/host/mount", "^TestEachStepOfAMountMayFail$")},
	{Name: "writable-mount-stays", Rule: "a bind that cannot become read-only is removed", Edits: []mutant.Edit{
		edit("driver/host/mount", "return errors.Join(err, c.unmount(target, unix.UMOUNT_NOFOLLOW))", "return err"),
	}, CaughtBy: test("./driver/host/mount", "^TestEachStepOfAMountMayFail$")},
	{Name: "remount-drops-flags", Rule: "a bind keeps its flags when it becomes read-only", Edits: []mutant.Edit{
		edit("driver/host/mount", `unix.MS_RDONLY|flags, "")`, `unix.MS_RDONLY|flags&0, "")`),
	}, CaughtBy: test("./driver/host/mount", "^TestEachStepOfAMountMayFail$")},
	{Name: "node-in-a-volume", Rule: "a device node inside a volume is not where the disk is in use", Edits: []mutant.Edit{
		edit("driver/host/mount", " && !inPodVolume(e.Path)", ""),
	}, CaughtBy: test("./driver/host/mount", "^TestADeviceNodeInAPodsVolumeIsNoUseOfItsDisk$")},
	{Name: "publish-without-verify", Rule: "a disk is verified before it is published", Edits: []mutant.Edit{
		edit("driver/host", `	if err := d.Verify(ctx); err != nil {
		return err
	}
	if err := h.mounts.Bind(staging, target, readOnly); err`, "	if err := h.mounts.Bind(staging, target, readOnly); err"),
	}, CaughtBy: test("./driver/host", "^TestADiskThatIsExchangedBeforeTheBindIsNotPublished$")},
	{Name: "block-without-verify", Rule: "a raw block disk is verified before it is published", Edits: []mutant.Edit{
		edit("driver/host", `	if err := d.Verify(ctx); err != nil {
		return err
	}
	if err := h.mounts.Bind(node, target, p.ReadOnly); err`, "	if err := h.mounts.Bind(node, target, p.ReadOnly); err"),
	}, CaughtBy: test("./driver/host", "^TestADiskThatIsExchangedBeforeTheBindIsNotPublished$")},
	{Name: "bound-unchecked", Rule: "the mount table shows a bound device", Edits: []mutant.Edit{
		edit("driver/host", "return h.checkBound(p.Volume, node, target,", `return nil
	return h.checkBound(p.Volume, node, target,`),
	}, CaughtBy: test("./driver/host", "^TestABlockBindThatTheTableDoesNotShowIsNoPublication$")},
	{Name: "wide-size", Rule: "the upper half of the size of a file system counts", Edits: []mutant.Edit{
		edit("driver/host/fs", "if little.Uint32(super[96:])&wide != 0 {", "if false {"),
	}, CaughtBy: test("./driver/host/fs", "^TestTheSizeOfADamagedExtIsThatOfItsBackupsToo$")},
	{Name: "server-unchecked", Rule: "a server without the required metadata gets no volume", Edits: []mutant.Edit{
		edit("driver/attach", `pair := s.marked.required.Missing(server); pair != "" {`, `pair := s.marked.required.Missing(server); pair != "" && false {`),
	}, CaughtBy: test("./test/suite/driver", "^TestAServerWithoutTheRequiredMetadataGetsNoVolume$")},
	{Name: "owner-volume", Rule: "whose a volume is is asked where it is read", Edits: []mutant.Edit{
		edit("driver/ownership", "return checked(ctx, v, err, g.checkVolume)", "return v, err"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^no_name_protect-other-clusters=strict$")},
	{Name: "owner-snapshot", Rule: "whose a snapshot is is asked where it is read", Edits: []mutant.Edit{
		edit("driver/ownership", "return checked(ctx, p, err, g.checkSnapshot)", "return p, err"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^unmarked_of_a_marked_volume_protect-other-clusters=strict$")},
	{Name: "owner-backup", Rule: "whose a backup is is asked where it is read", Edits: []mutant.Edit{
		edit("driver/ownership", "return checked(ctx, b, err, g.checkSnapshot)", "return b, err"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^no_name_protect-other-clusters=strict$")},
	{Name: "owner-waiter", Rule: "whose an object is is asked again at the end of a wait", Edits: []mutant.Edit{
		edit("driver/ownership", "if !ok || !ended && err == nil {", "if true {"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^mine_until_another_cluster_marks_it_protect-other-clusters=strict_ControllerExpandVolume$")},
	{Name: "owner-not-shown", Rule: "the attachments that Cinder does not show with a volume decide too", Edits: []mutant.Edit{
		edit("driver/ownership", "(len(attachments) == 0 || v.Multiattach) && v.Status != volume.Available {", "(len(attachments) == 0 || v.Multiattach) && v.Status == volume.Reserved {"),
	}, CaughtBy: test("./test/suite/driver", "^TestAnAttachmentThatIsNotShownDecidesInEveryStatus$/^downloading$")},
	{Name: "owner-volumes-named", Rule: "whose a volume is is asked where its name is searched", Edits: []mutant.Edit{
		edit("driver/ownership", "return named(ctx, found, err, g.checkVolume)", "return found, err"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^unmarked_of_a_marked_volume_protect-other-clusters=strict$")},
	{Name: "owner-snapshots-named", Rule: "whose a snapshot is is asked where its name is searched", Edits: []mutant.Edit{
		edit("driver/ownership", `	found, err := g.Cloud.SnapshotsNamed(ctx, name)
	return named(ctx, found, err, g.checkSnapshot)`, "	return g.Cloud.SnapshotsNamed(ctx, name)"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^on_a_server_with_my_tag_protect-other-clusters=strict$")},
	{Name: "owner-backups-named", Rule: "whose a backup is is asked where its name is searched", Edits: []mutant.Edit{
		edit("driver/ownership", `	found, err := g.Cloud.BackupsNamed(ctx, name)
	return named(ctx, found, err, g.checkSnapshot)`, "	return g.Cloud.BackupsNamed(ctx, name)"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^unmarked_of_a_marked_volume_protect-other-clusters$")},
	{Name: "owner-volume-list", Rule: "a list shows no volume of another cluster", Edits: []mutant.Edit{
		edit("driver/ownership", "if answer := g.rule.ofVolume(v); answer.owner == theirs {", "if false {\n			var answer verdict"),
	}, CaughtBy: test("./test/suite/driver", "^TestListsLeaveOutWhatBelongsToAnotherCluster$/^no_name_protect-other-clusters=strict_in_pages_of_1$")},
	{Name: "owner-snapshot-list", Rule: "a list shows no snapshot of another cluster", Edits: []mutant.Edit{
		edit("driver/ownership", "if !p.ForCaller {", "if true {"),
	}, CaughtBy: test("./test/suite/driver", "^TestListsLeaveOutWhatBelongsToAnotherCluster$/^no_name_protect-other-clusters=strict_in_pages_of_1$")},
	{Name: "owner-unmarked-snapshot", Rule: "a snapshot without a mark is its volume's", Edits: []mutant.Edit{
		edit("driver/ownership", "if answer.owner != unknown || !p.Volume.Exists() {", "if true {"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^unmarked_of_my_volume_protect-other-clusters=strict_CreateVolume_from_a_backup$")},
	{Name: "owner-strict", Rule: "a strict driver leaves alone what has no mark", Edits: []mutant.Edit{
		edit("driver/ownership", "case answer.owner == unknown && g.rule.Strict:", "case false:"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhoseAnObjectIsDecidesEveryRPC$/^on_a_server_with_my_tag_protect-other-clusters=strict$")},
	{Name: "owner-restored", Rule: "a restored volume belongs to the cluster that restores it", Edits: []mutant.Edit{
		edit("driver/ownership", "case !restored || token == v.Metadata[contract.MetadataRequest]:", "case true || token == v.Metadata[contract.MetadataRequest] || restored:"),
	}, CaughtBy: test("./test/suite/driver", "^TestARestoredVolumeBelongsToTheClusterThatRestoresIt$")},
	{Name: "owner-hidden-backup", Rule: "a protecting driver that may not read a backup does not call it deleted", Edits: []mutant.Edit{
		edit("driver/snapshot", "case s.keepHidden && volume.Is(err, volume.PermissionDenied):", "case false:"),
	}, CaughtBy: test("./test/suite/driver", "^TestWhatCannotBeReadIsNotChanged$/^protect-other-clusters=strict_DeleteSnapshot_of_a_backup$")},
	{Name: "owner-mark-replaced", Rule: "the mark of another cluster is not replaced", Edits: []mutant.Edit{
		edit("driver/provision", `mark != "" && mark != s.owner.Cluster && !s.createdForName(v)`, `mark != "" && false`),
	}, CaughtBy: test("./test/suite/driver", "^TestTheMarkOfAnotherClusterIsNotReplaced$")},
}
