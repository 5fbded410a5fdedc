package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/streaming/pkg/httpstream"
)

// forwarded is a forwarded port: a connection whose data stream gives one answer.
type forwarded struct {
	answer  string
	kubelet string // what it says about a port that it cannot reach
	refuses string // the type of the stream that cannot be created

	created []http.Header
	asked   bytes.Buffer
}

func (f *forwarded) CreateStream(h http.Header) (httpstream.Stream, error) {
	f.created = append(f.created, h.Clone())
	if h.Get("streamType") == f.refuses {
		return nil, errors.New("no stream")
	}
	if h.Get("streamType") == "error" {
		return &stream{Reader: strings.NewReader(f.kubelet), Writer: io.Discard}, nil
	}
	return &stream{Reader: strings.NewReader(f.answer), Writer: &f.asked}, nil
}

func (*forwarded) Close() error                       { return nil }
func (*forwarded) CloseChan() <-chan bool             { return nil }
func (*forwarded) SetIdleTimeout(time.Duration)       {}
func (*forwarded) RemoveStreams(...httpstream.Stream) {}

type stream struct {
	io.Reader
	io.Writer
}

func (*stream) Close() error         { return nil }
func (*stream) Reset() error         { return nil }
func (*stream) Headers() http.Header { return nil }
func (*stream) Identifier() uint32   { return 0 }

func TestAPageIsReadOverAStreamOfErrorsAndOneOfData(t *testing.T) {
	f := &forwarded{answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}
	page, err := readPage(t.Context(), f, 8080, "/debug/operations?x=y")
	if err != nil || string(page) != "hello" {
		t.Errorf("want hello, got %q, %v", page, err)
	}
	// The values of PortForward in the API of Kubernetes. One request has one pair of streams, and the error stream comes first.
	want := []http.Header{{"Streamtype": {"error"}, "Port": {"8080"}, "Requestid": {"0"}}, {"Streamtype": {"data"}, "Port": {"8080"}, "Requestid": {"0"}}}
	if diff := cmp.Diff(want, f.created); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	if asked := f.asked.String(); !strings.HasPrefix(asked, "GET /debug/operations?x=y HTTP/1.1\r\n") || !strings.Contains(asked, "Connection: close\r\n") {
		t.Errorf("want one GET of the page that closes the connection, got %q", asked)
	}
}

func TestAPageThatCannotBeReadIsAnErrorThatSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		port forwarded
		want string
	}{
		"no stream for errors":  {forwarded{refuses: "error"}, "no stream"},
		"no stream for data":    {forwarded{refuses: "data"}, "no stream"},
		"nobody listens":        {forwarded{kubelet: "connection refused"}, "kubelet says: connection refused"},
		"another status":        {forwarded{answer: "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}, "HTTP 503"},
		"a page cut short":      {forwarded{answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"}, "unexpected EOF"},
		"a page without an end": {forwarded{answer: "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", maxPage+1)}, errTooLarge.Error()},
	} {
		page, err := readPage(t.Context(), &test.port, 8080, "/")
		if page != nil || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: want an error with %q, got %d bytes, %v", name, test.want, len(page), err)
		}
	}
}
