package openstacksim

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// records are what the databases of Cinder and Nova hold, and what reads show.
type records struct {
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	backups   map[string]*backup
	messages  []*message
	servers   map[string]*server
}

type past struct {
	records
	until time.Time
}

// SetLag makes every read of Cinder and Nova show what was there so long before, as a database server that lags does. A write changes
// the truth, but first reads in that server whether its objects exist.
func (s *Sim) SetLag(d time.Duration) {
	defer s.lock()()
	s.lag, s.pasts = d, nil
}

// SetMessageLag does that for the messages of Cinder alone: it saves the status of a busy snapshot before the message (volume/manager.py).
func (s *Sim) SetMessageLag(d time.Duration) { assign(s, &s.messageLag, d) }

// remember keeps the records as they are, before a change. The caller holds s.mu.
func (s *Sim) remember() {
	now := time.Now()
	if s.lag == 0 || len(s.pasts) > 0 && s.pasts[len(s.pasts)-1].until.Equal(now) {
		return
	}
	s.pasts = slices.DeleteFunc(s.pasts, func(p past) bool { return now.Sub(p.until) >= s.lag })
	s.pasts = append(s.pasts, past{s.records.clone(), now})
}

// shown are the records that a read shows now, of which the oldest in pasts that is young enough is the one. The caller holds s.mu.
func (s *Sim) shown(c *call) records {
	if c.Method != http.MethodGet {
		return s.records
	}
	return s.lagging()
}

// lagging are the records of the database server that lags. The caller holds s.mu.
func (s *Sim) lagging() records {
	for _, p := range s.pasts {
		if time.Since(p.until) < s.lag {
			return p.records
		}
	}
	return s.records
}

func (r records) clone() records {
	out := records{map[string]*volume{}, map[string]*snapshot{}, map[string]*backup{}, slices.Clone(r.messages), map[string]*server{}}
	attachments := map[*attachment]*attachment{}
	for id, v := range r.volumes {
		w := *v
		w.metadata, w.attachments = maps.Clone(v.metadata), nil
		for _, a := range v.attachments {
			b := *a
			b.volume = &w
			attachments[a] = &b
			w.attachments = append(w.attachments, &b)
		}
		out.volumes[id] = &w
	}
	for id, p := range r.snapshots {
		q := *p
		q.metadata = maps.Clone(p.metadata)
		if w := out.volumes[p.volume.id]; w != nil {
			q.volume = w
		}
		out.snapshots[id] = &q
	}
	for id, b := range r.backups {
		q := *b
		q.labels, q.metadata = maps.Clone(b.labels), maps.Clone(b.metadata)
		out.backups[id] = &q
	}
	for id, v := range r.servers {
		w := *v
		w.Metadata, w.disks = maps.Clone(v.Metadata), nil
		for _, d := range v.disks {
			e := *d
			if a := attachments[d.attachment]; a != nil {
				e.attachment = a
			}
			w.disks = append(w.disks, &e)
		}
		out.servers[id] = &w
	}
	return out
}
