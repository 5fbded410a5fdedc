package histories

import (
	"time"
)

// history is everything that decides a run: what users request and when, and the faults. The same history gives the same run.
type history struct {
	// Seed decides the durations of the cloud and the IDs of objects.
	Seed     uint64
	Replicas int
	// Timeout is the sidecars' --timeout for each call.
	Timeout time.Duration
	// Skew is how far the clock of one Cinder host is ahead.
	Skew time.Duration
	// Lag is how long the reads show what was there before.
	Lag time.Duration `json:",omitempty"`
	// Ceph says that cinder-backup stores in Ceph, so that the driver restores into an empty volume.
	Ceph   bool `json:",omitempty"`
	Actors []actor
	Faults []fault
}

// operations is how many RPCs the sidecars send, without retries.
func (h history) operations() int {
	n := 0
	for _, a := range h.Actors {
		n += len(a.Steps)
	}
	return n
}

// actor is a user with one or two claims and their snapshots, who does one thing after the other.
type actor struct {
	Begin time.Duration
	// Shared claims are of a multiattach type and used as raw block by several servers.
	Shared bool `json:",omitempty"`
	// Zones are those of the claim's topology requirement, best first; none means any.
	Zones []string `json:",omitempty"`
	Steps []step
}

// operation is one RPC of a sidecar.
type operation string

const (
	createVolume   operation = "CreateVolume"
	deleteVolume   operation = "DeleteVolume"
	publish        operation = "ControllerPublishVolume"
	unpublish      operation = "ControllerUnpublishVolume"
	expand         operation = "ControllerExpandVolume"
	modify         operation = "ControllerModifyVolume"
	createSnapshot operation = "CreateSnapshot"
	deleteSnapshot operation = "DeleteSnapshot"
	listVolumes    operation = "ListVolumes"
	listSnapshots  operation = "ListSnapshots"
	getVolume      operation = "ControllerGetVolume"
	getCapacity    operation = "GetCapacity"
)

// step is one operation of an actor. The actor skips a step without its object, because an earlier step was abandoned.
type step struct {
	Think    time.Duration // before it
	Do       operation
	Volume   int           `json:",omitempty"` // which of the actor's claims
	Snapshot int           `json:",omitempty"` // which of its snapshots
	From     source        `json:",omitempty"` // of CreateVolume
	Backup   bool          `json:",omitempty"` // CreateSnapshot makes a backup
	Server   int           `json:",omitempty"`
	Size     int64         `json:",omitempty"` // GiB, of ControllerExpandVolume
	Abandon  time.Duration `json:",omitempty"` // the user deletes the object this long after the operation began; 0 never
}

// source is what a new volume is created from.
type source string

const (
	blank        source = ""
	fromVolume   source = "volume"
	fromSnapshot source = "snapshot"
)

// fault is one failure. It is armed at a time, or when an actor begins a step. A fault of a request applies to the next request that fits.
type fault struct {
	At    time.Duration `json:",omitempty"`
	Actor int           `json:",omitempty"` // with Step: armed when the actor begins it
	Step  int           `json:",omitempty"` // counted from 1; 0 means At
	Kind  kind
	// Class chooses requests, as classOf names them, or "any", "any read", "any write".
	Class string `json:",omitempty"`
	// Skip is how many requests pass first, Times is how many then fail.
	Skip, Times int `json:",omitempty"`
	// For is how long a fault of the cloud lasts, a reply or request is delayed, or a killed process stays away.
	For time.Duration `json:",omitempty"`
	// Replica is the replica whose process fails.
	Replica int `json:",omitempty"`
}

// kind is a kind of fault.
type kind string

// Faults of one request, at the HTTP boundary.
const (
	refused           kind = "connection refused"
	lostBefore        kind = "connection lost before the cloud acted"
	lostAfter         kind = "connection lost after the cloud acted"
	replyLate         kind = "reply late"
	truncated         kind = "reply truncated"
	unauthorized      kind = "401"
	conflict          kind = "409"
	overLimit         kind = "413"
	tooMany           kind = "429"
	tooManyRetry      kind = "429 with Retry-After"
	serverError       kind = "500"
	serverErrorDone   kind = "500 after the cloud acted"
	badGateway        kind = "502"
	unavailable       kind = "503"
	gatewayTimeout    kind = "504"
	gatewayDone       kind = "504 after the cloud acted"
	processedLater    kind = "504, processed later"
	lostThenProcessed kind = "connection lost, processed later"
	tokenExpired      kind = "token expired"
	killBefore        kind = "process killed before a request is sent"
	killAfter         kind = "process killed after the cloud acted"
)

// countOnly is no fault. From then on the run records the class of each request.
const countOnly kind = "count requests"

// Faults of the cloud.
const (
	cloudSlow      kind = "cloud slow"
	quotaExhausted kind = "quota exhausted"
	createFails    kind = "volume goes to error"
	zoneFull       kind = "no backend has room"
	deleteFails    kind = "volume goes to error_deleting"
	extendFails    kind = "volume goes to error_extending"
	snapshotFails  kind = "snapshot goes to error"
	backupFails    kind = "backup goes to error"
	restoreFails   kind = "volume goes to error_restoring" // in the scenarios only
	attachDropped  kind = "attach accepted and dropped"
	detachDropped  kind = "detach accepted and dropped"
)

// Faults of the processes.
const (
	processKilled     kind = "process killed"
	processTerminated kind = "process terminated"
	leaderChanged     kind = "leader changed"
	reloaded          kind = "configuration reloaded"
)

var requestFaults = []kind{
	refused, lostBefore, lostAfter, replyLate, truncated, unauthorized, conflict, overLimit, tooMany, tooManyRetry, serverError, serverErrorDone,
	badGateway, unavailable, gatewayTimeout, gatewayDone, processedLater, lostThenProcessed, tokenExpired, killBefore, killAfter,
}

var cloudFaults = []kind{
	cloudSlow, quotaExhausted, createFails, zoneFull, deleteFails, extendFails, snapshotFails, backupFails, attachDropped, detachDropped,
}

var processFaults = []kind{processKilled, processTerminated, leaderChanged, reloaded}
