// Package endless makes bodies that a hostile server sends to a reader that has a limit: without end, or small until somebody unpacks them.
package endless

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Byte is a body without end of one byte.
type Byte byte

// Read implements io.Reader. It copies what it has in blocks: a loop over bytes took most of the time of these tests.
func (b Byte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = byte(b)
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

// Bomb is a text with so many MiB of one byte after it, compressed. A gzip stream may have several members (RFC 1952, 2.2), so one MiB is
// compressed and repeated.
func Bomb(text string, b Byte, mib int) []byte {
	return append(member(text), bytes.Repeat(member(string(bytes.Repeat([]byte{byte(b)}, 1<<20))), mib)...)
}

func member(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprint("a buffer takes everything: ", err))
	}
	return out.Bytes()
}
