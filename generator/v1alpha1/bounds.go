package v1alpha1

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Bounds are the values that a setting may have, of one kind.
type Bounds interface {
	// Problems are what is wrong with a value, each as it follows the key in a message. Values that are not among the values of an enum are
	// not among them: EnumProblems reports those.
	Problems(value any) []string
	refused(s Setting) string
}

// Number is a whole number from Min to Max.
type Number struct {
	Min, Max int    // Max 0: any
	Zero     string // what 0 means, if it has a meaning of its own
}

// Problems says that a number is too small or too great.
func (b Number) Problems(value any) []string {
	switch n := value.(int); {
	case b.Max > 0 && (n < b.Min || n > b.Max):
		return []string{fmt.Sprintf("%d is not between %d and %d", n, b.Min, b.Max)}
	case n < b.Min && b.Zero != "":
		return []string{fmt.Sprintf("%d is less than %d; 0 means %s", n, b.Min, b.Zero)}
	case n < b.Min:
		return []string{fmt.Sprintf("%d is less than %d", n, b.Min)}
	}
	return nil
}

func (b Number) refused(Setting) string {
	text := fmt.Sprintf("less than %d", b.Min)
	if b.Max > 0 {
		text += fmt.Sprintf(", more than %d", b.Max)
	}
	return text
}

// OneOf is one of these texts.
type OneOf []string

// Problems are none: EnumProblems has them.
func (b OneOf) Problems(any) []string { return nil }

func (b OneOf) refused(Setting) string { return "" }

func (b OneOf) values() []any {
	var all []any
	for _, v := range b {
		all = append(all, v)
	}
	return all
}

// Text is a text that a pattern fits, or none.
type Text struct {
	Pattern *regexp.Regexp
	Want    string // what the pattern takes, for people
}

// Problems says that the pattern does not fit.
func (b Text) Problems(value any) []string {
	if text := value.(string); text != "" && !b.Pattern.MatchString(text) {
		return []string{fmt.Sprintf("%q; want %s", text, b.Want)}
	}
	return nil
}

func (b Text) refused(Setting) string { return "anything but " + b.Want }

// Switch is on or off.
type Switch struct{}

// Problems are none.
func (b Switch) Problems(any) []string { return nil }

func (b Switch) refused(Setting) string { return "" }

// AutoSwitch is auto, enabled, strict or disabled. What is decided is on, off, or the text strict. Auto is strict for one target.
type AutoSwitch struct {
	Switch
	StrictOn Target
	Because  string // auto is strict there
}

func (b AutoSwitch) values() []any { return []any{Auto, Enabled, Strict, Disabled} }

// Duration is a Go duration from Min to Max.
type Duration struct {
	Min, Max time.Duration
	Because  string // nothing longer is possible: "because ..."
}

// Problems says that a text is no duration, or one out of bounds.
func (b Duration) Problems(value any) []string {
	if d, err := time.ParseDuration(value.(string)); err != nil || d < b.Min || d > b.Max || value != seconds(d) {
		return []string{fmt.Sprintf("%q; want a duration from %s to %s in whole seconds, such as %s", value, seconds(b.Min), seconds(b.Max), seconds(b.Max))}
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", d/time.Second) }

func (b Duration) refused(s Setting) string {
	return fmt.Sprintf("anything that is not a duration such as %v; less than %s; more than %s, %s", s.Default, b.Min, b.Max, b.Because)
}

// Directory is the absolute path of a directory of the host.
type Directory struct{ Example string }

// Problems says that a path is relative, is not in its shortest form, or would be read as something else.
func (b Directory) Problems(value any) []string {
	if dir := value.(string); !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, "$:") || strings.ContainsFunc(dir, unicode.IsSpace) {
		return []string{fmt.Sprintf("%q; want an absolute path in its shortest form, such as %s", dir, b.Example)}
	}
	return nil
}

func (b Directory) refused(Setting) string {
	return "a path that is not absolute, or is not in its shortest form"
}

// Pairs are keys with values that become one flag: KEY=VALUE,KEY=VALUE.
type Pairs struct {
	Check   func(key, value string) error // nil: nothing else is a mistake
	Refused string
}

// cinderMetadata is what Cinder takes.
var cinderMetadata = Pairs{
	Check:   contract.CheckMetadata,
	Refused: "a key or value that Cinder does not accept; a key that the driver itself writes; a comma or a quotation mark",
}

// Problems are those of each pair, sorted by key.
func (b Pairs) Problems(value any) []string {
	var all []string
	pairs := value.(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if name == "" || strings.ContainsAny(name, ",\"=") || strings.ContainsAny(pairs[name], ",\"") || strings.ContainsFunc(name+pairs[name], unicode.IsControl) {
			all = append(all, fmt.Sprintf("%q: %q must not have control characters, commas, quotation marks or, in the key, equals signs", name, pairs[name]))
		} else if b.Check != nil {
			if err := b.Check(name, pairs[name]); err != nil {
				all = append(all, err.Error())
			}
		}
	}
	return all
}

func (b Pairs) refused(Setting) string { return b.Refused }
