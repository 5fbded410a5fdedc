package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

var slow = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Hour):
	case <-r.Context().Done():
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Seen", r.Host)
	w.WriteHeader(http.StatusAccepted)
	w.Write(body)
})

func TestAnHourInTransportTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := http.Client{Transport: memnet.Transport(slow)}
		begin := time.Now()
		response, err := client.Post("http://cloud/x", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		if got := time.Since(begin); got != time.Hour {
			t.Errorf("want one virtual hour, got %v", got)
		}
		if response.StatusCode != http.StatusAccepted || string(body) != "hello" || response.Header.Get("X-Seen") != "cloud" {
			t.Errorf("got %d %q %v", response.StatusCode, body, response.Header)
		}
	})
}

func TestTransportReturnsTheContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://cloud/", http.NoBody)
		begin := time.Now()
		_, err := memnet.Transport(slow).RoundTrip(request)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
}

func TestAnAbortedHandlerLooksLikeADroppedConnection(t *testing.T) {
	abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	request, _ := http.NewRequest(http.MethodGet, "http://cloud/", http.NoBody)
	if _, err := memnet.Transport(abort).RoundTrip(request); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want io.ErrUnexpectedEOF, got %v", err)
	}
}

func TestAServerOnAListenerKeepsVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen()
		server := &http.Server{Handler: slow}
		stopped := make(chan error, 1)
		go func() { stopped <- server.Serve(listener) }()

		transport := &http.Transport{DialContext: listener.DialContext}
		begin := time.Now()
		response, err := (&http.Client{Transport: transport}).Get("http://cloud/x")
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if got := time.Since(begin); got != time.Hour {
			t.Errorf("want one virtual hour, got %v", got)
		}
		transport.CloseIdleConnections()
		server.Close()
		if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("want http.ErrServerClosed, got %v", err)
		}
	})
}

func TestAClosedListenerRefuses(t *testing.T) {
	listener := memnet.Listen()
	listener.Close()
	listener.Close()
	if _, err := listener.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial: want net.ErrClosed, got %v", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: want net.ErrClosed, got %v", err)
	}
}

func TestDialHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := memnet.Listen().Dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want context.DeadlineExceeded, got %v", err)
		}
	})
}
