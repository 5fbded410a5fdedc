package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"
)

// largeText holds buffers for replies of more than smallBody bytes; Bound allows two for each cloud. json.Decoder would double a
// buffer of its own for each reply, up to 32 MiB. These have 8 MiB.
var largeText = sync.Pool{New: func() any { return new([maxBody + 1]byte) }}

// Decode reads the JSON body of a reply to its end, decodes it, and cleans every string. None has a token of the request.
func Decode(reply *http.Response, into any) error {
	body := reply.Body
	text, err := readSome(body, make([]byte, 0, 4<<10), smallBody)
	if err == nil { // the next byte waits for a slot, so no large buffer is allocated before
		if text, err = readSome(body, append(make([]byte, 0, smallBody+1), text...), smallBody+1); err == nil {
			large := largeText.Get().(*[maxBody + 1]byte)
			defer largeText.Put(large)
			text, err = readSome(body, append(large[:0], text...), len(large))
		}
	}
	switch {
	case err == nil:
		return ErrTooLarge
	case !errors.Is(err, io.EOF):
		return err
	}
	return unmarshal(text, into, cleaner{tokensOf(reply)})
}

// Unmarshal decodes JSON of a cloud and cleans every string.
func Unmarshal(text []byte, into any) error { return unmarshal(text, into, cleaner{}) }

func unmarshal(text []byte, into any, c cleaner) error {
	if !utf8.Valid(text) { // package json would make three of each such byte, in buffers that double
		text = bytes.ToValidUTF8(text, []byte("?"))
	}
	err := json.Unmarshal(text, into)
	c.clean(into)
	return Settings{}.failure(err)
}

// readSome reads until text has most bytes, or until an error. io.EOF counts as an error.
func readSome(body io.Reader, text []byte, most int) ([]byte, error) {
	for len(text) < most {
		if len(text) == cap(text) {
			text = append(make([]byte, 0, min(2*cap(text), most)), text...)
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err != nil {
			return text, err
		}
	}
	return text, nil
}
