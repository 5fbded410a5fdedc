package volume

import (
	"maps"
	"slices"
	"strings"
)

// Status is the status of a volume, a snapshot or a backup in Cinder (Cinder API reference, "Volume statuses", "Snapshot statuses" and "Backup
// statuses").
type Status string

// Short returns s, or the beginning of a text that is longer than each status of Cinder. A cloud chooses how long that is, and lists are kept.
func (s Status) Short() Status {
	const longest = 64
	return Status(strings.Clone(string(s[:min(len(s), longest)])))
}

// The statuses that code names. The tables below list all of them.
const (
	Creating    Status = "creating"
	Available   Status = "available"
	Reserved    Status = "reserved"
	Attaching   Status = "attaching"
	Detaching   Status = "detaching"
	InUse       Status = "in-use"
	Deleting    Status = "deleting"
	ErrorStatus Status = "error"
)

// Step is what a status means for an operation. The zero Step is Wait: an operation waits in a status that a later Cinder
// adds. Then the status changes, or the error at the deadline names it.
type Step int

// The steps.
const (
	Wait             Step = iota // the status changes by itself
	Proceed                      // the object is as wanted, or Cinder accepts the request
	Refuse                       // the status stays until an administrator resets it
	BeingDeleted                 // the object is being deleted
	CheckAttachments             // the attachments decide
)

// Meaning is what the status of a volume means for each operation.
type Meaning struct {
	Create Step // Proceed: the volume is created. Refuse: Cinder could not create it
	Attach Step // Proceed: Nova accepts an attach. CheckAttachments: the volume is attached to a server or host
	Delete Step // Proceed: Cinder accepts a delete. CheckAttachments: the volume is attached to a server or host
	Extend Step // Proceed: Cinder accepts an expansion, a retype, a snapshot or a clone
}

// statuses holds every volume status (Cinder API reference, "Volume statuses"; objects/fields.py and volume/api.py of Cinder 21). Cinder accepts
// a delete in available, error, error_restoring, error_extending and error_managing. It reserves an attachment in available and, for
// multiattach types, in in-use. It expands a volume in available and, from 3.42 on, in in-use.
var statuses = map[Status]Meaning{
	"creating":                {Create: Wait, Attach: Wait, Delete: Wait, Extend: Wait},
	"available":               {Create: Proceed, Attach: Proceed, Delete: Proceed, Extend: Proceed},
	"reserved":                {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"attaching":               {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"detaching":               {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"in-use":                  {Create: Proceed, Attach: CheckAttachments, Delete: CheckAttachments, Extend: Proceed},
	"maintenance":             {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"deleting":                {Create: BeingDeleted, Attach: BeingDeleted, Delete: BeingDeleted, Extend: BeingDeleted},
	"awaiting-transfer":       {Create: Proceed, Attach: Refuse, Delete: Refuse, Extend: Refuse},
	"error":                   {Create: Refuse, Attach: Refuse, Delete: Proceed, Extend: Refuse},
	"error_deleting":          {Create: Refuse, Attach: Refuse, Delete: Refuse, Extend: Refuse},
	"backing-up":              {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"restoring-backup":        {Create: Wait, Attach: Wait, Delete: Wait, Extend: Wait},
	"error_backing-up":        {Create: Proceed, Attach: Refuse, Delete: Refuse, Extend: Refuse},
	"error_restoring":         {Create: Refuse, Attach: Refuse, Delete: Proceed, Extend: Refuse},
	"error_extending":         {Create: Proceed, Attach: Refuse, Delete: Proceed, Extend: Refuse},
	"downloading":             {Create: Wait, Attach: Wait, Delete: Wait, Extend: Wait},
	"uploading":               {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"retyping":                {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"extending":               {Create: Proceed, Attach: Wait, Delete: Wait, Extend: Wait},
	"managing":                {Create: Wait, Attach: Wait, Delete: Wait, Extend: Wait},
	"error_managing":          {Create: Refuse, Attach: Refuse, Delete: Proceed, Extend: Refuse},
	"error_managing_deleting": {Create: BeingDeleted, Attach: BeingDeleted, Delete: BeingDeleted, Extend: BeingDeleted},
	"unmanaging":              {Create: BeingDeleted, Attach: BeingDeleted, Delete: BeingDeleted, Extend: BeingDeleted},
}

// Meaning is what s means for a volume. An unknown status means Wait for every operation.
func (s Status) Meaning() Meaning { return statuses[s] }

// Statuses are all known volume statuses, sorted.
func Statuses() []Status { return slices.Sorted(maps.Keys(statuses)) }

// SnapshotMeaning is what the status of a snapshot or backup means for each operation.
type SnapshotMeaning struct {
	Create Step // Proceed: the snapshot is created. Refuse: Cinder could not create it
	Delete Step // Proceed: Cinder accepts a delete
	Source Step // Proceed: Cinder creates volumes from the snapshot
}

// snapshotStatuses holds every status of a snapshot or backup (Cinder API reference, "Snapshot statuses"; objects/fields.py and volume/api.py of
// Cinder 21). Cinder accepts a delete in available and error, and creates volumes from an available snapshot.
var snapshotStatuses = map[Status]SnapshotMeaning{
	"creating":       {Create: Wait, Delete: Wait, Source: Wait},
	"available":      {Create: Proceed, Delete: Proceed, Source: Proceed},
	"error":          {Create: Refuse, Delete: Proceed, Source: Refuse},
	"deleting":       {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"deleted":        {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"error_deleting": {Create: Refuse, Delete: Refuse, Source: Refuse},
	"unmanaging":     {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"updating":       {Create: Proceed, Delete: Wait, Source: Wait},
	"backing-up":     {Create: Proceed, Delete: Wait, Source: Wait},
	"restoring":      {Create: Proceed, Delete: Wait, Source: Wait},
}

// SnapshotMeaning is what s means for a snapshot or backup. An unknown status means Wait for every operation.
func (s Status) SnapshotMeaning() SnapshotMeaning { return snapshotStatuses[s] }

// SnapshotStatuses are all known statuses of snapshots and backups, sorted.
func SnapshotStatuses() []Status { return slices.Sorted(maps.Keys(snapshotStatuses)) }
