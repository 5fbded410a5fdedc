package openstacksim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault makes a call or an operation go wrong. It names either requests (Method, Path) or an Operation.
type Fault struct {
	// Method and Path choose requests: Method empty is any; Path is the URL's, with "*" for any one segment and a final "**" for
	// the rest: /volume/v3/*/volumes/*.
	Method, Path string
	// Contains, when set, must occur in the request's body or query: it tells actions and names apart.
	Contains string
	// Operation chooses what the cloud does by itself. It then fails: a create ends in error, an attach silently back in
	// available, a detach back in in-use. Message replaces the user message that Cinder leaves.
	Operation Operation
	Message   string
	// Full makes a create find no room on any backend, which the scheduler tells, instead of fail on one.
	Full bool
	// Slow makes an operation take Delay longer but succeed.
	Slow bool

	// Status answers chosen requests, with Body as it is or a fault of the service's kind; 0 answers normally (with Delay or Drop).
	Status int
	Body   string
	Header http.Header
	// Delay holds the request or the operation for so long first.
	Delay time.Duration
	// Drop cuts the connection without an answer.
	Drop bool
	// After lets the call do its work and only then spoils the answer: what was written stays written.
	After bool
	// Late lets the call do its work so long after the spoilt answer, as a service does on which its proxy gave up. What it takes from
	// a quota it takes then.
	Late time.Duration

	// Skip lets so many requests or operations pass before the first that it happens to.
	Skip int
	// Times is how often it happens; 0 means until removed.
	Times int

	fired bool
}

// SetFault adds a fault; the first that matches wins. Call remove to take it away again.
func (s *Sim) SetFault(f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Header = f.Header.Clone()
	added := &f
	s.faults = append(s.faults, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropFault(added)
	}
}

// ClearFaults takes every fault away.
func (s *Sim) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Sim) dropFault(f *Fault) {
	s.faults = slices.DeleteFunc(slices.Clone(s.faults), func(x *Fault) bool { return x == f })
}

// skips reports whether this one is let pass.
func (f *Fault) skips() bool {
	if f.Skip == 0 {
		return false
	}
	f.Skip--
	return true
}

// take counts one use of a fault and gives what it does.
func (s *Sim) take(f *Fault) Fault {
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			s.dropFault(f)
		}
	}
	taken := *f
	taken.fired = true
	return taken
}

// httpFault is what goes wrong with a request; the zero Fault when nothing does. It needs s.mu.
func (s *Sim) httpFault(c *call) Fault {
	for _, f := range s.faults {
		if f.Operation == "" && (f.Method == "" || f.Method == c.Method) && faultPath(f.Path, c.URL.Path) &&
			(f.Contains == "" || strings.Contains(string(c.body), f.Contains) || strings.Contains(c.URL.RawQuery, f.Contains)) && !f.skips() {
			return s.take(f)
		}
	}
	return Fault{}
}

// operationFault is what goes wrong with an operation that begins now. It needs s.mu.
func (s *Sim) operationFault(op Operation) Fault {
	for _, f := range s.faults {
		if f.Operation == op && !f.skips() {
			return s.take(f)
		}
	}
	return Fault{}
}

// fails tells whether an operation is to fail.
func (f Fault) fails() bool { return f.fired && !f.Slow }

func (f Fault) message(standard string) string {
	if f.Message != "" {
		return f.Message
	}
	return standard
}

func faultPath(pattern, path string) bool {
	if pattern == "" {
		return true
	}
	if head, ok := strings.CutSuffix(pattern, "/**"); ok {
		want, got := strings.Split(head, "/"), strings.Split(path, "/")
		return len(got) > len(want) && faultPath(head, strings.Join(got[:len(want)], "/"))
	}
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return len(want) == len(got) && !slices.ContainsFunc(indices(want), func(i int) bool { return want[i] != "*" && want[i] != got[i] })
}

func indices(list []string) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// reply is the answer a fault gives, in the manner of the service.
func (f Fault) reply(c *call) reply {
	r := fault(f.Status, http.StatusText(f.Status))
	switch c.service {
	case identity:
		r = identityError(c, f.Status, http.StatusText(f.Status), http.StatusText(f.Status))
	case blocks:
		if asked, ok := askedVersion(c.Header, "volume"); ok {
			c.versioned("volume", 3, 0, volumeMaxMinor, asked)
		}
	case compute:
		c.computeVersioned()
	}
	if f.Body != "" {
		r.body = text{"application/json", f.Body}
	}
	if f.Header != nil {
		r.header = f.Header
	}
	return r
}
