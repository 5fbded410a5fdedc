package cloudconf

import (
	"bytes"
	"fmt"
	"strings"
)

// Bytes writes the file: sections and keys in order, with quotes where a value needs them. Parse reads the same settings back.
// Bytes keeps no comments. It drops carriage returns, because the dialect cannot express them.
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

// Quote returns a value as the file has it: without quotes if Parse reads the same value back, else in double quotes.
func Quote(value string) string {
	if value == strings.Trim(value, " \t\r") && !strings.ContainsAny(value, "#;\"\\\n\t\r") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", "").Replace(value) + `"`
}
