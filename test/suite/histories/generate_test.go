package histories

import (
	"math/rand/v2"
	"slices"
	"time"
)

// generate makes a history from a seed: fifty to five hundred operations of some actors, and what goes wrong meanwhile.
func generate(seed uint64) history {
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	h := history{
		Seed: seed, Replicas: 1 + g.IntN(3),
		Timeout: pick(g, 15*time.Second, time.Minute, 3*time.Minute),
		Skew:    pick(g, 0, 0, 10*time.Minute, -10*time.Minute),
	}
	h.Lag = []time.Duration{0, 400 * time.Millisecond, 0, 2 * time.Second}[seed%4]
	operations, actors := 50+g.IntN(451), 3+g.IntN(10)
	for i := range actors {
		h.Actors = append(h.Actors, g.actor(i, operations/actors))
	}
	horizon := time.Duration(operations/actors) * 35 * time.Second
	for range operations / pick(g, 2, 5, 15) {
		h.Faults = append(h.Faults, g.fault(horizon, h.Replicas))
	}
	return h
}

type generator struct{ *rand.Rand }

func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// between gives a time with all its digits, so that hardly two things happen at one moment.
func (g generator) between(least, most time.Duration) time.Duration {
	return least + time.Duration(g.Int64N(int64(most-least)))
}

// actor plans steps that make sense one after the other if all goes well. Half of the actors clean up at the end.
func (g generator) actor(number, steps int) actor {
	a := actor{Begin: g.between(time.Second, time.Minute), Shared: number%4 == 3}
	a.Zones = pick(g, nil, []string{"az1"}, []string{"az2"}, []string{"az2", "az1"})
	plan := planned{shared: a.Shared, backups: len(a.Zones) == 1 && a.Zones[0] == "az1"}
	for len(a.Steps) < max(steps, 4) {
		s := g.step(&plan)
		s.Think = g.between(100*time.Millisecond, pick(g, time.Second, 20*time.Second, time.Minute))
		a.Steps = append(a.Steps, s)
	}
	if number%2 == 0 {
		for i := range 2 {
			for server := range 4 {
				a.Steps = append(a.Steps, step{Do: unpublish, Volume: i, Server: server})
			}
		}
		a.Steps = append(a.Steps, step{Do: deleteSnapshot}, step{Do: deleteSnapshot, Snapshot: 1}, step{Do: deleteVolume, Volume: 1}, step{Do: deleteVolume})
	}
	return a
}

// planned is what an actor has if all went well.
type planned struct {
	shared  bool
	backups bool     // the zone has cinder-backup
	sizes   [2]int64 // GiB; 0 where there is no volume
	servers [2][]int
	of      [2]int // which volume a snapshot is of, counted from 1; 0 where there is none
}

func (g generator) step(p *planned) step {
	i := g.IntN(2)
	j := g.IntN(2)
	if p.sizes[i] == 0 {
		return g.create(p, i)
	}
	abandon := time.Duration(0)
	if g.IntN(10) == 0 {
		abandon = g.between(100*time.Millisecond, 40*time.Second)
	}
	switch n := g.IntN(100); {
	case n < 25 && (p.shared || len(p.servers[i]) == 0):
		server := g.IntN(4)
		if slices.Contains(p.servers[i], server) {
			break
		}
		if abandon == 0 {
			p.servers[i] = append(p.servers[i], server)
		}
		return step{Do: publish, Volume: i, Server: server, Abandon: abandon}
	case n < 55 && len(p.servers[i]) > 0:
		server := p.servers[i][g.IntN(len(p.servers[i]))]
		p.servers[i] = slices.DeleteFunc(p.servers[i], func(s int) bool { return s == server })
		return step{Do: unpublish, Volume: i, Server: server}
	case n < 60:
		p.sizes[i]++
		return step{Do: expand, Volume: i, Size: p.sizes[i]}
	case n < 65:
		return step{Do: modify, Volume: i}
	case n < 75 && p.of[j] == 0:
		if abandon == 0 {
			p.of[j] = i + 1
		}
		return step{Do: createSnapshot, Volume: i, Snapshot: j, Backup: p.backups && g.IntN(3) == 0, Abandon: abandon}
	case n < 83 && p.of[j] != 0:
		p.of[j] = 0
		return step{Do: deleteSnapshot, Snapshot: j}
	case n < 95 && len(p.servers[i]) == 0 && !slices.Contains(p.of[:], i+1):
		p.sizes[i] = 0
		return step{Do: deleteVolume, Volume: i}
	}
	return step{Do: pick(g, listVolumes, listSnapshots, getVolume, getCapacity), Volume: i}
}

func (g generator) create(p *planned, i int) step {
	s := step{Do: createVolume, Volume: i, Snapshot: g.IntN(2)}
	switch g.IntN(4) {
	case 0:
		if p.sizes[1-i] > 0 {
			s.From = fromVolume
		}
	case 1:
		if p.of[s.Snapshot] != 0 {
			s.From = fromSnapshot
		}
	}
	if g.IntN(10) == 0 {
		s.Abandon = g.between(100*time.Millisecond, 40*time.Second)
		return s
	}
	p.sizes[i] = 1
	return s
}

// faultClasses are the requests that faults happen to: those that change something more often.
var faultClasses = []string{
	"create volume", "create volume", "create volume", "create volume", "list volumes", "get volume", "delete volume", "delete volume",
	"set volume metadata", "volume action os-extend", "create snapshot", "create snapshot", "list snapshots", "get snapshot",
	"delete snapshot", "create backup", "create backup", "list backups", "delete backup", "list attachments", "get attachment",
	"delete attachment", "get server", "list server attachments", "attach", "attach", "attach", "detach", "detach", "log in", "any", "any", "any read",
	"any write", "any write", "any write", "any write",
}

func (g generator) fault(horizon time.Duration, replicas int) fault {
	f := fault{At: g.between(time.Second, horizon), Times: 1, Replica: g.IntN(replicas)}
	switch n := g.IntN(100); {
	case n < 72:
		f.Kind, f.Class, f.Skip = pick(g, requestFaults...), pick(g, faultClasses...), pick(g, 0, 0, 0, 1, 2, 5)
		f.Times = pick(g, 1, 1, 1, 2, 5)
	case n < 86:
		f.Kind, f.Times = pick(g, cloudFaults...), pick(g, 1, 1, 2)
	default:
		f.Kind = pick(g, processFaults...)
	}
	switch f.Kind {
	case replyLate:
		f.For = g.between(2*time.Second, 200*time.Second)
	case processedLater, lostThenProcessed:
		f.For = g.between(time.Second, 90*time.Second)
	case killBefore, killAfter, processKilled, processTerminated:
		f.For, f.Times = g.between(time.Second, time.Minute), 1
	case cloudSlow, quotaExhausted:
		f.For = g.between(20*time.Second, 4*time.Minute)
	}
	return f
}
