package verify

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/guestaccess"
)

//go:embed sidecars.yaml
var sidecarsYAML []byte

//go:embed sidecars-by-hand.yaml
var sidecarsByHandYAML []byte

// sidecar is a CSI sidecar in the version that a bundle names.
type sidecar struct {
	Version string   `json:"version"`
	Source  string   `json:"source"` // where its flags were read
	Flags   []string `json:"flags"`
}

// sidecars are the CSI sidecars by container name.
var sidecars = sync.OnceValue(func() map[string]sidecar {
	all := map[string]sidecar{}
	for _, text := range [][]byte{sidecarsYAML, sidecarsByHandYAML} {
		if err := yaml.UnmarshalStrict(text, &all); err != nil {
			panic(err) // the files are part of this program
		}
	}
	return all
})

const (
	driverContainer    = "driver"
	generatorContainer = "generator" // its arguments are a command of this program, not flags alone

	guestTokenContainer = "guest-token" // the driver's image with another command
)

// arguments checks the flags of a container: an unknown flag ends the program at once. Of a flag that is given twice, the last
// one counts. values are the environment variables of the container.
func (c *checker) arguments(where string, container corev1.Container, values map[string]string) {
	args := make([]string, len(container.Args))
	for i, arg := range container.Args {
		args[i] = expand(arg, values)
	}
	side, isSidecar := sidecars()[program(container.Name)]
	switch {
	case container.Name == driverContainer:
		var settings config.Config
		c.parsed(where, "the driver", append(args, config.ExtraArgs(values[config.ExtraArgsVariable])...), settings.Bind, settings.Validate)
	case container.Name == guestTokenContainer:
		var o guestaccess.Options
		c.parsed(where, "guest-token", args, o.Bind, func() error {
			_, err := guestaccess.New(o)
			return err
		})
	case isSidecar:
		known := map[string]bool{}
		for _, flag := range side.Flags {
			known[flag] = false
		}
		c.flags(where, program(container.Name)+" "+side.Version, args, known)
	case container.Name != generatorContainer:
		c.find("%s: a bundle has no container of this name, so its flags cannot be checked; use driver, %s or the generator's own",
			where, strings.Join(slices.Sorted(maps.Keys(sidecars())), ", "))
	}
}

// parsed parses the flags as the program itself does when it starts.
func (c *checker) parsed(where, program string, args []string, bind func(*pflag.FlagSet), validate func() error) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	bind(set)
	set.SetOutput(io.Discard)
	known := map[string]bool{}
	set.VisitAll(func(f *pflag.Flag) {
		known[f.Name] = strings.HasSuffix(f.Value.Type(), "Slice") || strings.HasSuffix(f.Value.Type(), "Array") || f.Value.Type() == "stringToString"
	})
	if !c.flags(where, program, args, known) {
		return
	}
	err := set.Parse(args)
	if err == nil {
		err = validate()
	}
	if err != nil {
		c.find("%s: args: %s refuses them: %s; correct the value", where, program, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// flags compares arguments with the flags that a program has, and whether each may be repeated. It returns false after a finding.
func (c *checker) flags(where, program string, args []string, known map[string]bool) bool {
	before := len(c.findings)
	given := map[string]bool{}
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		repeatable, there := known[name]
		switch {
		case !isFlag:
			c.find("%s: args: %q is not --FLAG or --FLAG=VALUE; write the flag and its value as one argument", where, arg)
		case !there:
			c.find("%s: args: %s has no flag --%s%s", where, program, name, suggestion(name, known))
		case given[name] && !repeatable:
			c.find("%s: args: --%s is given twice; keep one, because the last one counts", where, name)
		}
		given[name] = true
	}
	return len(c.findings) == before
}

func suggestion(name string, known map[string]bool) string {
	if near, ok := contract.Nearest(name, slices.Sorted(maps.Keys(known))); ok {
		return fmt.Sprintf("; did you mean --%s?", near)
	}
	return "; remove it"
}

// expand replaces $(NAME) as the kubelet does. A name that values do not have stays as it is.
func expand(text string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		m := variable.FindStringSubmatch(match)
		if value, there := values[m[2]]; there && m[1] == "" {
			return value
		}
		return strings.TrimPrefix(match, m[1])
	})
}
