package volume

import "time"

// Lag is how long after its answer to a write the cloud may still show what was there before. Another database server of Galera does that without
// wsrep_sync_wait, and so does a replica. Lag is a bound of this driver, not of OpenStack.
const Lag = 3 * time.Second

// Written is when the cloud answered a write.
type Written time.Time

// JustWritten is the time of a write that the cloud has answered now.
func JustWritten() Written { return Written(time.Now()) }

// Shows reports whether reads show the write by now. Until then, a state as before the write, or a 404 for a new object, is no outcome of it: a
// wait goes on. An outcome that could not be there before the write ends a wait at once.
func (w Written) Shows() bool { return time.Since(time.Time(w)) >= Lag }
