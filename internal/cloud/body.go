package cloud

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// boundedBody is a response body with a limit on the bytes that can be read.
type boundedBody struct {
	io.ReadCloser
	ctx        context.Context
	slots      chan struct{} // one for each large reply
	most, read int
	values     int  // the most that the JSON text may have
	cut        bool // at the limit the body ends, without an error
	separators separators
	release    func() // frees the slot; nil while the body has none
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.cut && b.read >= b.most {
		return 0, io.EOF
	}
	if b.read >= smallBody && b.release == nil {
		if err := b.takeSlot(); err != nil {
			return 0, err
		}
	}
	if b.release == nil {
		p = p[:min(len(p), smallBody-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	if b.separators.count(p[:n]); b.read > b.most || b.separators.seen > b.values {
		return 0, fmt.Errorf("%w: more than %d bytes or %d values", ErrTooLarge, b.most, b.values)
	}
	return n, err
}

// takeSlot waits for a slot. Close frees it, and so does the end of the request context.
func (b *boundedBody) takeSlot() error {
	select {
	case b.slots <- struct{}{}:
		b.release = sync.OnceFunc(func() { <-b.slots })
		context.AfterFunc(b.ctx, b.release)
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	if b.release != nil {
		b.release()
	}
	return b.ReadCloser.Close()
}

// separators counts the commas and opening brackets of a JSON text outside its strings.
type separators struct {
	seen              int
	inString, escaped bool
}

func (s *separators) count(text []byte) {
	for _, c := range text {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			s.escaped, s.inString = c == '\\', c != '"'
		case c == '"':
			s.inString = true
		case c == ',', c == '{', c == '[':
			s.seen++
		}
	}
}
