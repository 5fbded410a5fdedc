package volume

// step is what a volume's status means for what somebody wants of it. The zero step is to wait: a status that a later Cinder
// adds passes, or the caller's deadline comes and says which one it was.
type step int

const (
	wait    step = iota // it changes by itself
	proceed             // it is as wanted, or the request can be sent now
	refuse              // it stays so until an administrator acts
	leaving             // it is on its way out
	look                // the attachments decide
)

// meanings says what each status means for the four things that are done to volumes.
type meanings struct {
	create step // proceed: made. refuse: never will be
	attach step // proceed: Nova may be asked. look: attached somewhere
	delete step // proceed: Cinder takes a DELETE. look: attached somewhere
	extend step // proceed: Cinder takes an extension or a retype, makes a snapshot or a clone of it
}

// What Cinder's volume statuses mean (Cinder API reference, "Volume statuses"; objects/fields.py and volume/api.py of Cinder 21:
// a DELETE is taken in available, error, error_restoring, error_extending and error_managing; an attachment is reserved in
// available and, for multiattach types, in-use; an extension begins in available and, from 3.42 on, in-use).
var statuses = map[Status]meanings{
	"creating":                {create: wait, attach: wait, delete: wait, extend: wait},
	"available":               {create: proceed, attach: proceed, delete: proceed, extend: proceed},
	"reserved":                {create: proceed, attach: wait, delete: wait, extend: wait},
	"attaching":               {create: proceed, attach: wait, delete: wait, extend: wait},
	"detaching":               {create: proceed, attach: wait, delete: wait, extend: wait},
	"in-use":                  {create: proceed, attach: look, delete: look, extend: proceed},
	"maintenance":             {create: proceed, attach: wait, delete: wait, extend: wait},
	"deleting":                {create: leaving, attach: leaving, delete: leaving, extend: leaving},
	"awaiting-transfer":       {create: proceed, attach: refuse, delete: refuse, extend: refuse},
	"error":                   {create: refuse, attach: refuse, delete: proceed, extend: refuse},
	"error_deleting":          {create: refuse, attach: refuse, delete: refuse, extend: refuse},
	"backing-up":              {create: proceed, attach: wait, delete: wait, extend: wait},
	"restoring-backup":        {create: wait, attach: wait, delete: wait, extend: wait},
	"error_backing-up":        {create: proceed, attach: refuse, delete: refuse, extend: refuse},
	"error_restoring":         {create: refuse, attach: refuse, delete: proceed, extend: refuse},
	"error_extending":         {create: proceed, attach: refuse, delete: proceed, extend: refuse},
	"downloading":             {create: wait, attach: wait, delete: wait, extend: wait},
	"uploading":               {create: proceed, attach: wait, delete: wait, extend: wait},
	"retyping":                {create: proceed, attach: wait, delete: wait, extend: wait},
	"extending":               {create: proceed, attach: wait, delete: wait, extend: wait},
	"managing":                {create: wait, attach: wait, delete: wait, extend: wait},
	"error_managing":          {create: refuse, attach: refuse, delete: proceed, extend: refuse},
	"error_managing_deleting": {create: leaving, attach: leaving, delete: leaving, extend: leaving},
	"unmanaging":              {create: leaving, attach: leaving, delete: leaving, extend: leaving},
}
