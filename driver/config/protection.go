package config

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// Protection is the value of --protect-other-clusters: whether the driver leaves alone what does not belong to its cluster.
type Protection string

// The values. The zero Protection is Off.
const (
	Off    Protection = ""
	On     Protection = "true"   // objects of other clusters
	Strict Protection = "strict" // also objects whose owner is unknown
)

// String is the text of the flag.
func (p *Protection) String() string {
	if *p == Off {
		return "false"
	}
	return string(*p)
}

// Set reads the text of the flag.
func (p *Protection) Set(text string) error {
	if text == string(Strict) {
		*p = Strict
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is not one of true, false, strict", text)
	}
	*p = map[bool]Protection{true: On, false: Off}[on]
	return nil
}

// Type is what the help text shows for the value.
func (p *Protection) Type() string { return "string" }

// protection is the kind of flag: without a value it means true.
var protection = kind(func(fs *pflag.FlagSet, field *Protection, name string, value Protection, help string) {
	*field = value
	fs.Var(field, name, help)
	fs.Lookup(name).NoOptDefVal = string(On)
})
