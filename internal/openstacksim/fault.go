package openstacksim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault makes a request or an operation fail. It names either requests (Method, Path) or an Operation.
type Fault struct {
	// Method and Path select requests. An empty Method means any. Path is that of the URL; "*" matches one segment, and a final
	// "**" the rest: /volume/v3/*/volumes/*.
	Method, Path string
	// Contains must occur in the body or the query of the request, unless it is empty. It selects actions and names.
	Contains string
	// Operation selects work that the cloud does after a reply. That work fails: a create ends in error, an attach silently in
	// available, a detach in in-use. Message replaces the user message of Cinder, or the sentence in the error body of a request.
	Operation Operation
	Message   string
	// Full makes a create fail in the scheduler, which finds no backend with capacity, instead of on a backend.
	Full bool
	// Slow makes an operation take Delay longer, but succeed.
	Slow bool

	// Status is the status of the reply, with Body as it is or an error body of the service. 0 gives the usual reply (with Delay
	// or Drop). A Body that is not JSON is the page of a proxy, so the reply has no header of the service.
	Status int
	Body   string
	Header http.Header
	// Delay is how long the request or the operation waits first.
	Delay time.Duration
	// Drop closes the connection without a reply.
	Drop bool
	// After runs the request first and then replaces its reply: its writes stay.
	After bool
	// Late runs the request this long after the replaced reply, as a service does after its proxy gave up. It takes quota then.
	Late time.Duration

	// Skip is how many matching requests or operations pass before the first that fails.
	Skip int
	// Times is how often the fault occurs; 0 means until its removal.
	Times int

	fired bool
}

// SetFault adds a fault; the first match counts. Call remove to remove it.
func (s *Sim) SetFault(f Fault) (remove func()) {
	defer s.lock()()
	f.Header = f.Header.Clone()
	added := &f
	s.faults = append(s.faults, added)
	return func() {
		defer s.lock()()
		s.dropFault(added)
	}
}

// ClearFaults removes every fault.
func (s *Sim) ClearFaults() { assign(s, &s.faults, nil) }

func (s *Sim) dropFault(f *Fault) {
	s.faults = slices.DeleteFunc(slices.Clone(s.faults), func(x *Fault) bool { return x == f })
}

// skips reports whether this request or operation passes.
func (f *Fault) skips() bool {
	if f.Skip == 0 {
		return false
	}
	f.Skip--
	return true
}

// take counts one use of a fault and returns its effect.
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

// httpFault is the fault of a request, or the zero Fault. The caller holds s.mu.
func (s *Sim) httpFault(c *call) Fault {
	for _, f := range s.faults {
		if f.Operation == "" && (f.Method == "" || f.Method == c.Method) && faultPath(f.Path, c.URL.Path) &&
			(f.Contains == "" || strings.Contains(string(c.body), f.Contains) || strings.Contains(c.URL.RawQuery, f.Contains)) && !f.skips() {
			return s.take(f)
		}
	}
	return Fault{}
}

// operationFault is the fault of an operation that begins now, or else of the one that follows in it. The caller holds s.mu.
func (s *Sim) operationFault(ops ...Operation) Fault {
	for _, op := range ops {
		for _, f := range s.faults {
			if f.Operation == op && !f.skips() {
				return s.take(f)
			}
		}
	}
	return Fault{}
}

func (f Fault) fails() bool { return f.fired && !f.Slow }

func (f Fault) message(standard string) string {
	return cmp.Or(f.Message, standard)
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
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == "*" || w == g })
}

func (s *Sim) faultReply(c *call, f Fault) reply {
	sentence := f.message(http.StatusText(f.Status))
	r := fault(f.Status, sentence)
	switch c.service {
	case identity:
		r = identityError(c, f.Status, http.StatusText(f.Status), sentence)
	case blocks:
		if asked, ok := askedVersion(c.Header, "volume"); ok {
			c.versioned("volume", 3, 0, s.volumeMinor(), asked)
		}
	case compute:
		s.computeVersioned(c)
	}
	switch {
	case json.Valid([]byte(f.Body)):
		r.body = text{"application/json", f.Body}
	case f.Body != "":
		r.body, r.header, r.proxy = text{"text/html", f.Body}, nil, true
	}
	if f.Header != nil {
		r.header = f.Header
	}
	return r
}
