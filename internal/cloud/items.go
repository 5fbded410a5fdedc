package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// maxItems is how many elements an array in one reply may have. Cinder returns at most 1,000 in a page, unless its administrator
// raises osapi_max_limit. More volumes than this do not fit into maxBody bytes. An element of three bytes ({},) may take some
// hundred in memory, so a limit on bytes is not enough.
const maxItems = 10_000

// Items is an array in a reply of a cloud.
type Items[T any] []T

// UnmarshalJSON implements json.Unmarshaler. It returns an error for more than maxItems elements, and for one that is too large for an object.
func (l *Items[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	decoder := json.NewDecoder(bytes.NewReader(data))
	switch token, err := decoder.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return &json.UnmarshalTypeError{Value: fmt.Sprintf("%T", token), Type: reflect.TypeFor[[]T]()}
	}
	for decoder.More() {
		if len(*l) == maxItems {
			return fmt.Errorf("an array has more than %d elements", maxItems)
		}
		var item T
		before := decoder.InputOffset()
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		if err := checkObject(data[before:decoder.InputOffset()]); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}
