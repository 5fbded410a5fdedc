package cloudconf

import (
	"bytes"
	"fmt"
	"strings"
)

// Bytes writes the file: sections and keys in order, quotes where a value needs them. Parse reads the same settings back.
// Comments are not kept. A carriage return has no spelling in the dialect and is dropped.
func (f *File) Bytes() []byte {
	var b bytes.Buffer
	for i, s := range f.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		if s.Subsection == "" {
			fmt.Fprintf(&b, "[%s]\n", s.Name)
		} else {
			fmt.Fprintf(&b, "[%s \"%s\"]\n", s.Name, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.Subsection))
		}
		for _, k := range s.Keys {
			if k.Bare {
				fmt.Fprintln(&b, k.Name)
			} else {
				fmt.Fprintln(&b, strings.TrimRight(k.Name+" = "+Quote(k.Value), " "))
			}
		}
	}
	return b.Bytes()
}

// Quote is a value as it is written: bare where that reads back the same, else in double quotes.
func Quote(value string) string {
	if value == strings.Trim(value, " \t\r") && !strings.ContainsAny(value, "#;\"\\\n\t\r") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", "").Replace(value) + `"`
}
