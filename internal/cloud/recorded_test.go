package cloud

import (
	"bytes"
	"io"
	"net/http"
)

// recorded is an http.ResponseWriter whose answer a client can read.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) WriteHeader(status int)      { r.status = status }
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *recorded) response(req *http.Request) *http.Response {
	return &http.Response{
		StatusCode: r.status, Header: r.header, Body: io.NopCloser(&r.body), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}
}
