package openstacksim

import (
	"bytes"
	"encoding/json"
	"testing"
)

// plainly are the same values as encode writes, in types that encoding/json encodes without methods of this package.
func plainly(v any) any {
	list := func(n int, at func(int) any) any {
		all := make([]any, n)
		for i := range all {
			all[i] = plainly(at(i))
		}
		return all
	}
	switch v := v.(type) {
	case obj:
		fields := map[string]any{}
		for _, p := range v {
			fields[p.key] = plainly(p.value)
		}
		return fields
	case []obj:
		if v != nil {
			return list(len(v), func(i int) any { return v[i] })
		}
	case []any:
		if v != nil {
			return list(len(v), func(i int) any { return v[i] })
		}
	}
	return v
}

func TestAReplyIsTheTextThatEncodingJSONWrites(t *testing.T) {
	var noObjects []obj
	var noValues []any
	values := []any{
		nil, "", "plain", "<a href=\"x\">&'</a>", "back\\slash", "tab\tnew\nline\x00", "é, 日本, \u2028, \x7f", "not UTF-8: \xff", true, false, 0, -7, 1 << 40, int64(3), 2.5,
		obj{},
		[]obj{},
		noObjects,
		[]any{},
		noValues,
		[]string{"a", "<"},
		[]string(nil),
		map[string]string{"b": "<", "a": ""},
		map[string]any{"x": obj{{"y", "<"}}},
		json.RawMessage(`{"raw":1}`),
		struct {
			A string `json:"a"`
		}{"<"},
	}
	all := obj{}
	for i, v := range values {
		all = append(all, pair{string(rune('a' + i)), v})
	}
	values = append(values, all, []obj{all, {{"quoted \"key\"", obj{{"é", all}}}}}, []any{all, "x", []any{1, obj{{"k", noObjects}}}})
	for _, v := range values {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(plainly(v)); err != nil {
			t.Fatal(err)
		}
		if got := string(encode(v)); got+"\n" != want.String() {
			t.Errorf("want %sgot  %s", &want, got)
		}
	}
}

func TestAReplyKeepsTheOrderOfItsKeys(t *testing.T) {
	if got, want := string(encode(obj{{"b", 1}, {"a", obj{{"d", nil}, {"c", true}}}})), `{"b":1,"a":{"d":null,"c":true}}`; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
