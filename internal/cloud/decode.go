package cloud

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// largeText are buffers for answers of more than smallBody bytes, of which Limits lets two be read at a time. json.Decoder would grow a
// buffer of its own for each by doubling it: 32 MiB, where these are 8.
var largeText = sync.Pool{New: func() any { return new([MaxBody + 1]byte) }}

// Decode reads a body of JSON to its end and decodes it, with every string cleaned.
func Decode(body io.Reader, into any) error {
	text, err := readSome(body, make([]byte, 0, 4<<10), smallBody)
	if err == nil { // there may be more; the next byte waits for a slot, before there is a large buffer
		if text, err = readSome(body, append(make([]byte, 0, smallBody+1), text...), smallBody+1); err == nil {
			large := largeText.Get().(*[MaxBody + 1]byte)
			defer largeText.Put(large)
			text, err = readSome(body, append(large[:0], text...), len(large))
		}
	}
	switch {
	case err == nil:
		return errors.New("the answer is too large")
	case !errors.Is(err, io.EOF):
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	CleanStrings(into)
	return nil
}

// readSome reads until text has most bytes, or to an error, which io.EOF is too.
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
