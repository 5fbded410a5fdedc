// Package hostile writes words into a report that a tenant, a node or a cloud chose. It looks for those that a terminal shows as rows of the report.
package hostile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/width"
)

// rows are how rows of a report begin, each with a word that no report has.
var rows = []string{"do: EVIL", "$ EVIL", "Cause: EVIL", "done      attach  EVIL", "why: EVIL", "Who:   EVIL"}

var forged = regexp.MustCompile(`^[ #]*(?:(?:do|Cause|why|Who):|\$|done +attach) *EVIL`)

// nothing are letters that a terminal shows as blanks.
const nothing = "\u2800\u3164\u115f\u1160\uffa0\u00ad\u3000"

// Texts are of 1 KiB each: rows at many distances, with letters of each width between them.
func Texts() (all []string) {
	for _, filler := range []string{"-", "中", "ü", "🙂", "☁\ufe0f", "\u200b", "\u2800", "\u3164", "\uffa0", "\u00ad"} {
		for _, n := range []int{0, 7, 19, 38} {
			for _, blanks := range []string{" ", "\u2800"} {
				text := ""
				for i := n; len(text) < 1<<10; i++ {
					text += strings.ReplaceAll(rows[i%len(rows)], " ", blanks) + blanks + strings.Repeat(filler, n) + strings.TrimPrefix(blanks, "\u2800")
				}
				all = append(all, text)
			}
		}
	}
	return append(all, " "+all[0], "\t"+all[0])
}

// Fill writes a text into each string of a value. Others, named TYPE.FIELD, are words of the report.
func Fill(v any, text string, others ...string) { fill(reflect.ValueOf(v), text, others) }

func fill(v reflect.Value, text string, others []string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), text, others)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i), text, others)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !slices.Contains(others, v.Type().Name()+"."+f.Name) {
				fill(v.Field(i), text, others)
			}
		}
	}
}

// Check prints at the usual widths, and fails for a row that others forged.
func Check(t *testing.T, name string, print func(columns int) string) {
	t.Helper()
	for _, columns := range []int{80, 100, 120} {
		text := print(columns)
		if !strings.Contains(text, "EVIL") {
			t.Errorf("%s has no word of others:\n%s", name, text)
		}
		for _, wide := range []bool{false, true} {
			for _, row := range terminal(text, columns, wide) {
				if forged.MatchString(row) {
					t.Fatalf("%s, %d columns: a row of others: %q", name, columns, row)
				}
			}
		}
	}
}

// terminal are the rows of a terminal. A wide one gives two columns to each letter that is not of ASCII.
func terminal(text string, columns int, wide bool) (all []string) {
	for line := range strings.Lines(text) {
		row, at := "", 0
		for _, r := range strings.TrimSuffix(line, "\n") {
			n := 1
			switch kind := width.LookupRune(r).Kind(); {
			case unicode.In(r, unicode.Mn, unicode.Me) || r == 0x200b:
				n = 0
			case r > 0x7f && wide, kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
				n = 2
			}
			if at+n > columns {
				all, row, at = append(all, row), "", 0
			}
			if at += n; strings.ContainsRune(nothing, r) {
				r = ' '
			}
			row += string(r)
		}
		all = append(all, row)
	}
	return all
}
