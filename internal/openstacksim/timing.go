package openstacksim

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"
)

// Timing makes times vary as in a busy cloud. The latencies are then medians of log-normal distributions. The random number
// depends on the operation and its object, so the same work takes the same time in any order of requests. The zero Timing uses
// every latency as it is.
type Timing struct {
	Seed uint64
	// Spread is the standard deviation of the logarithm: with 0.6, the 99th percentile is four times the median. Jitter is that
	// of the API replies.
	Spread, Jitter float64
	// Row is how much longer the reply to a list takes for each object in it, after the cloud read the state of the object.
	Row time.Duration
	// Serial makes each server run one operation at a time, in the order of the requests: device, attach, detach (the lock of
	// nova-compute per instance).
	Serial bool
	// Forget is how much later than Cinder Nova forgets a detached volume; 0 is a quarter of the time of the detach.
	Forget time.Duration
}

// SetTiming sets the timing of operations that begin later.
func (s *Sim) SetTiming(t Timing) {
	defer s.lock()()
	s.timing, s.draws, s.free = t, map[string]int{}, map[string]time.Time{}
}

// takes is how long an operation on an object takes this time. The caller holds s.mu.
func (s *Sim) takes(op Operation, object string) time.Duration {
	median, spread := s.latency[op], s.timing.Spread
	if op == Answer {
		spread = s.timing.Jitter
	}
	if spread == 0 {
		return median
	}
	key := string(op) + " " + object
	s.draws[key]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + " " + strconv.Itoa(s.draws[key]) + " " + strconv.FormatUint(s.timing.Seed, 10)))
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finaliser of splitmix64: the low bits of FNV are not uniform
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	// The transform of Box and Muller, on the two halves.
	u, v := (float64(x>>32)+1)/(1<<32), float64(x&(1<<32-1))/(1<<32)
	z := math.Sqrt(-2*math.Log(min(u, 1))) * math.Cos(2*math.Pi*v)
	return time.Duration(float64(median) * math.Exp(spread*z))
}

// turn reserves the time d of a server, and returns how long from now that time ends. The caller holds s.mu.
func (s *Sim) turn(server string, d time.Duration) time.Duration {
	if !s.timing.Serial {
		return d
	}
	now := time.Now()
	begin := slices.MaxFunc([]time.Time{now, s.free[server]}, time.Time.Compare)
	s.free[server] = begin.Add(d)
	return begin.Add(d).Sub(now)
}

// forgets is how long before the end of a detach of length d Cinder deletes its attachment.
func (t Timing) forgets(d time.Duration) time.Duration {
	if t.Forget > 0 {
		return min(t.Forget, d)
	}
	return d / 4
}

// Effect is an operation on a volume that ended, with or without success.
type Effect struct {
	Operation Operation
	Volume    string // name
	Server    string // ID; "" if no server takes part
	Asked     time.Time
	Done      time.Time // Asked is the time of the request, Done that of its visible effect
}

// Effects are the operations that have ended since the last ResetEffects, in the order of their ends.
func (s *Sim) Effects() []Effect {
	defer s.lock()()
	return append([]Effect(nil), s.effects...)
}

// ResetEffects forgets the effects so far.
func (s *Sim) ResetEffects() { assign(s, &s.effects, nil) }

// effect records the end of an operation. The caller holds s.mu.
func (s *Sim) effect(op Operation, v *volume, server string, asked time.Time) {
	if len(s.effects) == kept {
		s.effects = append(s.effects[:0], s.effects[kept/2:]...)
	}
	s.effects = append(s.effects, Effect{op, deref(v.name), server, asked, time.Now()})
}
