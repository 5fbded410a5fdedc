package openstacksim

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// Timing makes times vary as a busy cloud's do. The latencies are then medians of log-normal distributions, drawn by what is
// done to which object, so that the same work takes the same time whoever asks for it in whatever order. The zero Timing takes
// every latency as it is.
type Timing struct {
	Seed uint64
	// Spread is the standard deviation of the logarithm: with 0.6 the 99th percentile is four times the median. Jitter is that of
	// the API's answers.
	Spread, Jitter float64
	// Row is how much longer the answer to a list takes for each object in it, after the state was read that it shows.
	Row time.Duration
	// Serial makes each server do one thing at a time, in the order asked: give a device, attach, detach (nova-compute's lock by
	// instance).
	Serial bool
	// Forget is how much later than Cinder Nova forgets a detached volume; 0 is a quarter of the detach's time.
	Forget time.Duration
}

// SetTiming changes how long what begins from now on takes.
func (s *Sim) SetTiming(t Timing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timing, s.draws, s.free = t, map[string]int{}, map[string]time.Time{}
}

// takes is how long an operation on an object takes this time. It needs s.mu.
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
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finaliser of splitmix64: FNV's low bits alone are not even
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	// Box and Muller's transform of the two halves.
	u, v := (float64(x>>32)+1)/(1<<32), float64(x&(1<<32-1))/(1<<32)
	z := math.Sqrt(-2*math.Log(min(u, 1))) * math.Cos(2*math.Pi*v)
	return time.Duration(float64(median) * math.Exp(spread*z))
}

// turn takes a server's time for d, and gives how long from now its turn is over. It needs s.mu.
func (s *Sim) turn(server string, d time.Duration) time.Duration {
	if !s.timing.Serial {
		return d
	}
	now := time.Now()
	begin := s.free[server]
	if begin.Before(now) {
		begin = now
	}
	s.free[server] = begin.Add(d)
	return begin.Add(d).Sub(now)
}

// forgets is how long before the end of a detach that takes d Cinder is told.
func (t Timing) forgets(d time.Duration) time.Duration {
	if t.Forget > 0 {
		return min(t.Forget, d)
	}
	return d / 4
}

// Effect is an operation on a volume that has come to its end, whether well or not.
type Effect struct {
	Operation Operation
	Volume    string // its name
	Server    string // its id; empty where no server has to do with it
	Asked     time.Time
	Done      time.Time // Asked is when the request came, Done when its effect could be seen
}

// Effects are the operations that have ended since the last ResetEffects, in the order of their ends.
func (s *Sim) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Effect(nil), s.effects...)
}

// ResetEffects forgets the effects so far.
func (s *Sim) ResetEffects() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects = nil
}

// effect notes the end of an operation. It needs s.mu.
func (s *Sim) effect(op Operation, v *volume, server string, asked time.Time) {
	if len(s.effects) == kept {
		s.effects = append(s.effects[:0], s.effects[kept/2:]...)
	}
	s.effects = append(s.effects, Effect{op, deref(v.name), server, asked, time.Now()})
}
