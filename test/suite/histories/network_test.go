package histories

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// network sends the requests of one process to the cloud. A server does not notice that its caller has left. So the cloud processes a
// request even if the process does not wait for the reply.
type network struct{ process *process }

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}

// RoundTrip implements http.RoundTripper.
func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	w, p := n.process.world, n.process
	if p.dead() {
		return nil, errKilled
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	q, sent := read(r), time.Now()
	if !pause(r.Context(), p, w.offset(q.class+q.object()+r.URL.RawQuery)) {
		return n.left(r)
	}
	f := w.faultFor(p, q)
	if f.Kind == refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	if f.Kind == killBefore {
		p.kill(f.For)
		return nil, errKilled
	}
	if q.changes() {
		w.guard(p, q, sent)
	}
	if slow := w.slowness(); slow > 0 && !pause(r.Context(), p, slow) {
		return n.left(r)
	}
	return n.sendWithFault(r, q, f)
}

// left is the error of a request whose caller no longer waits.
func (n network) left(r *http.Request) (*http.Response, error) {
	if n.process.dead() {
		return nil, errKilled
	}
	return nil, r.Context().Err()
}

// sendWithFault sends a request with fault f.
func (n network) sendWithFault(r *http.Request, q request, f fault) (*http.Response, error) {
	w, p := n.process.world, n.process
	switch f.Kind {
	case "":
		return n.forward(r, q, "")
	case lostBefore:
		return nil, errReset
	case lostAfter:
		if _, err := n.forward(r, q, f.Kind); err != nil {
			return nil, err
		}
		return nil, errReset
	case killAfter:
		_, err := n.forward(r, q, f.Kind)
		p.kill(f.For)
		return nil, errors.Join(errKilled, err)
	case replyLate:
		reply, err := n.forward(r, q, "")
		if err == nil && !pause(r.Context(), p, f.For) {
			w.lost(q)
			return n.left(r)
		}
		return reply, err
	case truncated:
		reply, err := n.forward(r, q, f.Kind)
		if err == nil {
			whole, _ := io.ReadAll(reply.Body)
			reply.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
		}
		return reply, err
	case serverErrorDone, gatewayDone:
		if _, err := n.forward(r, q, f.Kind); err != nil {
			return nil, err
		}
	case processedLater, lostThenProcessed:
		later := r.Clone(context.Background())
		w.background.Go(func() {
			time.Sleep(f.For)
			w.note("the cloud processes %s now", q.class)
			_, _ = n.send(later, q, f.Kind)
		})
		if f.Kind == lostThenProcessed {
			return nil, errReset
		}
	case tokenExpired:
		w.sim.RevokeTokens()
		return n.forward(r, q, "")
	}
	return reply(r, f.Kind), nil
}

// broken is the end of a body whose connection broke.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// forward sends a request to the cloud and waits for its reply as long as the caller waits. LostBy, if set, is the fault by which the process
// does not get the reply.
func (n network) forward(r *http.Request, q request, lostBy kind) (*http.Response, error) {
	type result struct {
		reply *http.Response
		err   error
	}
	done := make(chan result)
	left := make(chan struct{})
	defer close(left)
	sent := r.Clone(context.WithoutCancel(r.Context()))
	go func() {
		reply, err := n.send(sent, q, lostBy)
		select {
		case done <- result{reply, err}:
		case <-left:
			n.process.world.lost(q)
		}
	}()
	select {
	case got := <-done:
		return got.reply, got.err
	case <-r.Context().Done():
	case <-n.process.killed:
	}
	return n.left(r)
}

// send sends a request to the cloud, and records what it created.
func (n network) send(r *http.Request, q request, lostBy kind) (*http.Response, error) {
	reply, err := n.process.world.cloud.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if q.changes() && reply.StatusCode < http.StatusBadRequest {
		whole, _ := io.ReadAll(reply.Body)
		reply.Body = io.NopCloser(bytes.NewReader(whole))
		n.process.world.acted(n.process, q, created(whole), lostBy != "")
	}
	return reply, nil
}

// pause waits for d; false if the caller has left or the process was killed meanwhile.
func pause(ctx context.Context, p *process, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-p.killed:
	}
	return false
}

// reply is the answer of a service that did not act, or of the proxy in front of it.
func reply(r *http.Request, k kind) *http.Response {
	code, _, _ := strings.Cut(string(k), " ")
	if strings.HasPrefix(code, "504,") {
		code = "504"
	}
	number, _ := strconv.Atoi(strings.TrimSuffix(code, ","))
	header := http.Header{"Content-Type": {"application/json"}, "X-Openstack-Request-Id": {"req-00000000-0000-0000-0000-000000000000"}}
	if k == tooManyRetry {
		header.Set("Retry-After", "7")
	}
	body := `{"fault": {"code": ` + strconv.Itoa(number) + `, "message": "created by the test"}}`
	return &http.Response{
		Status: strconv.Itoa(number) + " " + http.StatusText(number), StatusCode: number, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
