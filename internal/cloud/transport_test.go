package cloud

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// frozen is a server of HTTP/2 that reads everything and answers nothing.
type frozen struct {
	config *tls.Config
	window uint32 // how much of a reply it may send before the client reads that
	pings  int
}

// Frames of RFC 9113, 6.5 and 6.7.
const (
	settingsFrame, pingFrame = 4, 6
	initialWindowSize        = 4
)

func (s *frozen) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	if _, err := conn.Write([]byte{0, 0, 0, settingsFrame, 0, 0, 0, 0, 0}); err != nil {
		return
	}
	for {
		var header [9]byte // length, type, flags, stream
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		body := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		switch header[3] {
		case settingsFrame:
			for ; len(body) >= 6; body = body[6:] {
				if binary.BigEndian.Uint16(body) == initialWindowSize {
					s.window = binary.BigEndian.Uint32(body[2:])
				}
			}
		case pingFrame:
			s.pings++
		}
	}
}

// All requests to a cloud share one connection of HTTP/2. Go reads a reply before anybody wants it, up to 4 MiB by default, and never finds out
// by itself that a connection is dead.
func TestAConnectionOfHTTP2HoldsLittleAndIsGivenUpWhenItIsDead(t *testing.T) {
	t.Parallel()
	server := frozen{config: anotherCertificate(t)}
	server.config.NextProtos, server.config.SessionTicketsDisabled = []string{"h2"}, true // a pipe has no place for a ticket
	synctest.Test(t, func(t *testing.T) {
		transport, err := newTransport(Settings{Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		transport.Proxy = nil
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			t.Cleanup(func() { _ = there.Close() })
			go server.serve(tls.Server(there, server.config))
			return here, nil
		}
		began := time.Now()
		resp, err := (&http.Client{Transport: transport}).Get("https://cloud.test/")
		if err == nil {
			_ = resp.Body.Close()
		}
		took := time.Since(began)
		synctest.Wait()
		if err == nil || server.pings == 0 || took > 31*time.Second {
			t.Errorf("want the connection given up after half a minute, got %v after %s and %d pings", err, took, server.pings)
		}
		if server.window > 256<<10 {
			t.Errorf("want at most 256 KiB of a reply that waits, got %d", server.window)
		}
		if server.window == 0 {
			t.Error("no settings of HTTP/2")
		}
	})
}
