package openstacksim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// obj is a JSON object that keeps the order of its keys, as the services do.
type obj []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON writes the pairs in order.
func (o obj) MarshalJSON() ([]byte, error) { return encode(o), nil }

// when has the pairs too if the condition holds.
func (o obj) when(holds bool, pairs ...pair) obj {
	if !holds {
		return o
	}
	return append(o, pairs...)
}

// encode writes JSON without escaping <, > and &, as the services do.
func encode(v any) []byte {
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

// write writes what replies are made of by itself. With MarshalJSON, encoding/json scans the text of an object again for each object around it.
// That took a third of the processor time of whole histories.
func write(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		writeString(b, v)
	case bool:
		b.Write(strconv.AppendBool(b.AvailableBuffer(), v))
	case int:
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(v), 10))
	case obj:
		b.WriteByte('{')
		for i, p := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, p.key)
			b.WriteByte(':')
			write(b, p.value)
		}
		b.WriteByte('}')
	case []obj:
		writeList(b, v)
	case []any:
		writeList(b, v)
	default:
		writeOther(b, v)
	}
}

func writeList[T any](b *bytes.Buffer, list []T) {
	if list == nil {
		b.WriteString("null")
		return
	}
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		write(b, v)
	}
	b.WriteByte(']')
}

// writeString writes a text that needs no escape by itself.
func writeString(b *bytes.Buffer, s string) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		writeOther(b, s)
		return
	}
	b.WriteByte('"')
	b.WriteString(s)
	b.WriteByte('"')
}

func writeOther(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a reply cannot be encoded: %v", err)) // only values of this package reach this function
	}
	b.Truncate(b.Len() - 1) // a newline
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// micros is the time format of Cinder and Keystone. Times from the database have no fraction.
func micros(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }

func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

// now is the time as the database stores it, in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// python writes a decoded JSON value as Python's repr does, for the messages of schema errors.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
			return `"` + v + `"`
		}
		return "'" + strings.ReplaceAll(v, "'", `\'`) + "'"
	case json.Number:
		return v.String()
	case json.RawMessage:
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber()
		return pythonStream(d)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = python(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for k, e := range v {
			parts = append(parts, python(k)+": "+python(e))
		}
		slices.Sort(parts) // the order in the request is lost; any order will do
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

// pythonStream is python for the next value of a stream, with the keys in their order.
func pythonStream(d *json.Decoder) string {
	token, err := d.Token()
	if err != nil {
		return "None"
	}
	open, ok := token.(json.Delim)
	if !ok {
		return python(token)
	}
	var parts []string
	for d.More() {
		part := pythonStream(d)
		if open == '{' {
			part += ": " + pythonStream(d)
		}
		parts = append(parts, part)
	}
	shut, _ := d.Token()
	return fmt.Sprint(open) + strings.Join(parts, ", ") + fmt.Sprint(shut)
}

// bare is python without the quotes of strings, as "Value: %s" in schema errors.
func bare(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return python(v)
}
