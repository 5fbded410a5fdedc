package migrate

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/secret"
)

type flagValue struct{ name, value string }

// flagsOf are the flags of a container, with the rules of upstream's plugin: "_" is "-", and a flag alone is true.
func flagsOf(c corev1.Container) map[string]string {
	given := map[string]string{}
	last := ""
	for _, arg := range slices.Concat(c.Command, c.Args) {
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
			if last != "" {
				given[last] = unquoted(arg)
			}
			last = ""
			continue
		case !hasValue:
			value = "true"
		}
		last = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		if there, repeated := given[last]; repeated && last == "cloud-name" {
			value = there + "," + value
		}
		given[last] = unquoted(value)
		if hasValue {
			last = ""
		}
	}
	return given
}

// shells are programs whose arguments are no flags of the driver.
var shells = []string{"sh", "bash", "ash", "dash", "ksh", "zsh", "busybox"}

// flagsInside finds the flags of another command in one word.
var flagsInside = regexp.MustCompile(`\s--`)

// runsShell is whether a shell has the flags of a container, so that flagsOf does not see all.
func runsShell(c corev1.Container) bool {
	words := slices.Concat(c.Command, c.Args)
	return len(words) > 0 && slices.Contains(shells, path.Base(words[0])) ||
		slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") && flagsInside.MatchString(w) })
}

// mayBeSecret is whether a flag may hold a secret, by its name, its value, or the variables that the value is made of.
func mayBeSecret(f flagValue, resolved string) bool {
	return secret.Flag(f.name) == secret.Secret || secret.In(resolved) != "" ||
		slices.ContainsFunc(reference.FindAllString(f.value, -1), func(ref string) bool { return secret.Variable(strings.Trim(ref, "$()")) != secret.Public })
}

func unquoted(text string) string { return strings.Trim(text, `"`) }

func sortedFlags(given map[string]string) []flagValue {
	var all []flagValue
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all = append(all, flagValue{name, given[name]})
	}
	return all
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// resolve replaces $(NAME) by the variables of the container, as kubelet does, and remembers their names. It reports whether each of them has a plain value.
func resolve(c corev1.Container, text string, used map[string]bool) (string, bool) {
	all := true
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name && e.ValueFrom == nil })
		if i < 0 {
			all = false
			return found
		}
		used[name] = true
		return c.Env[i].Value
	})
	return text, all
}
