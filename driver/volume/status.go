package volume

import (
	"maps"
	"slices"
)

// Step is what a volume's status means for what somebody wants of it. The zero Step is to wait: a status that a later Cinder
// adds passes, or the caller's deadline comes and says which one it was.
type Step int

const (
	Wait             Step = iota // it changes by itself
	Proceed                      // it is as wanted, or the request can be sent now
	Refuse                       // it stays so until an administrator acts
	BeingDeleted                 // it is on its way out
	CheckAttachments             // the attachments decide
)

// Meaning says what each status means for the four things that are done to volumes.
type Meaning struct {
	Create Step // proceed: made. refuse: never will be
	Attach Step // proceed: Nova may be asked. look: attached somewhere
	Delete Step // proceed: Cinder takes a DELETE. look: attached somewhere
	Extend Step // proceed: Cinder takes an extension or a retype, makes a snapshot or a clone of it
}

// What Cinder's volume statuses mean (Cinder API reference, "Volume statuses"; objects/fields.py and volume/api.py of Cinder 21:
// a DELETE is taken in available, error, error_restoring, error_extending and error_managing; an attachment is reserved in
// available and, for multiattach types, in-use; an extension begins in available and, from 3.42 on, in-use).
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

// Meaning is what s means for a volume. A status that Cinder adds later means Wait for everything.
func (s Status) Meaning() Meaning { return statuses[s] }

// Statuses are all that the tables know, sorted.
func Statuses() []Status { return slices.Sorted(maps.Keys(statuses)) }
