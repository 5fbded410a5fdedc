package memnet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
)

// Transport serves every request by h, in a goroutine of its own. It returns the response after h returns, so a response is whole
// and not streamed.
//
// If the request context ends first, Transport returns its error at once, and h sees the same context. A handler that panics with
// http.ErrAbortHandler looks like a lost connection (io.ErrUnexpectedEOF). Transport calls the hooks GetConn and GotConn of
// net/http/httptrace as net/http does. A connection is always available.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ handler http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	if err := r.Context().Err(); err != nil {
		closeBody(r)
		return nil, err
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	type outcome struct {
		response *http.Response
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		defer closeBody(r)
		response, err := t.serve(r)
		done <- outcome{response, err}
	}()
	select {
	case o := <-done:
		return o.response, o.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (t transport) serve(r *http.Request) (_ *http.Response, err error) {
	w := &writer{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
				err = io.ErrUnexpectedEOF
				return
			}
			panic(p)
		}
	}()
	t.handler.ServeHTTP(w, serverSide(r))
	return w.response(r), nil
}

func serverSide(r *http.Request) *http.Request {
	in := r.Clone(r.Context())
	in.Host = cmp.Or(in.Host, r.URL.Host)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "mem"
	return in
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// writer collects a response. The first write freezes the header, as in net/http.
type writer struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *writer) response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(bytes.NewReader(w.body.Bytes())), ContentLength: int64(w.body.Len()), Request: r,
	}
}
