package support

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// allowedFiles are the keys of the driver's own ConfigMaps that hold public certificates. distribution.yaml and plan.yaml of the drift check are none:
// they repeat variables and annotations of any name.
var allowedFiles = []string{"ca.pem", "ca-bundle.crt"}

// allowedStatus are the keys of the ConfigMap that the drift check writes.
var allowedStatus = []string{"result", "exitCode", "checkedAt", "generator", "error", "differences", "planChecksum", "bundleGenerator", "relatedObjects"}

func allowedData(key string) bool {
	return secret.Variable(key) == secret.Public || slices.Contains(allowedFiles, key) || slices.Contains(allowedStatus, key)
}

// others takes out the values of an object whose names this project does not know. These are variables and arguments of containers,
// annotations, and texts of ConfigMaps. The names stay.
func (r *Redactor) others(object map[string]any) {
	if annotations, is := object["annotations"].(map[string]any); is {
		r.except(annotations, func(key string) bool { return secret.Annotation(key) == secret.Public })
	}
	if _, is := object["metadata"].(map[string]any); is || object["kind"] == "ConfigMap" {
		if data, is := object["data"].(map[string]any); is {
			r.except(data, allowedData)
		}
	}
	if data, is := object["binaryData"]; is {
		object["binaryData"] = r.all(data)
	}
	if logins, is := object["auths"]; is {
		object["auths"] = r.all(logins)
	}
	if variables, is := object["env"].([]any); is {
		for _, v := range variables {
			r.variable(v)
		}
	}
	if headers, is := object["httpHeaders"].([]any); is { // of a probe
		for _, h := range headers {
			if h, is := h.(map[string]any); is {
				h["value"] = r.hide("", h["value"])
			}
		}
	}
	if _, is := object["name"]; is { // a volume of a pod: its driver is somebody else's
		for kind, key := range map[string]string{"csi": "volumeAttributes", "flexVolume": "options"} {
			if of, is := object[kind].(map[string]any); is && of[key] != nil {
				of[key] = r.hide("", of[key])
			}
		}
	}
	for key, first := range map[string]*regexp.Regexp{"args": subcommand, "command": program} {
		if words, is := object[key].([]any); is {
			r.arguments(words, first)
		}
	}
}

// except takes out the values of all keys but those that are allowed.
func (r *Redactor) except(object map[string]any, allowed func(key string) bool) {
	for key, value := range object {
		if !allowed(key) {
			object[key] = r.hide(key, value)
		}
	}
}

func (r *Redactor) variable(of any) {
	v, is := of.(map[string]any)
	if !is {
		return
	}
	name, _ := v["name"].(string)
	switch value, isText := v["value"].(string); {
	case v["value"] == nil:
	case secret.Variable(name) != secret.Public:
		v["value"] = r.hide(name, v["value"])
	case isText:
		v["value"] = secret.HideValue(name, value)
	}
}

// hide takes out every text of a value. Only that of a secret name is searched elsewhere: an unknown annotation may hold the name of a node.
func (r *Redactor) hide(name string, value any) any {
	if secretName(name) || fileKey.MatchString(name) {
		return r.all(value)
	}
	return NewRedactor().all(value)
}

// arguments takes out the values of flags that no program of the bundle has. It also takes out words that are no flag, path or variable.
func (r *Redactor) arguments(words []any, first *regexp.Regexp) {
	for i, w := range words {
		word, is := w.(string)
		if !is {
			continue
		}
		name, value, assigned := strings.Cut(word, "=")
		switch flag := strings.TrimLeft(name, "-"); {
		case flag != name && !assigned && flagName.MatchString(word) && (len(name) <= 2 || strings.HasPrefix(name, "--") || secret.Flag(flag) == secret.Public):
		case flag != name && !assigned: // -pPASSWORD
			words[i] = r.hide("", word)
		case flag != name && secret.Flag(flag) != secret.Public:
			words[i] = name + "=" + r.hide(name, value).(string)
		case flag != name:
		case i == 0 && first.MatchString(word), path.MatchString(word), reference.MatchString(word):
		default:
			words[i] = r.hide("", word)
		}
	}
}

// path is a path in a container of Linux. A password may begin with a slash too.
var path = regexp.MustCompile(`^/(?:bin|csi|dev|etc|home|lib|mnt|opt|proc|registration|run|sbin|sys|tmp|usr|var)(?:/[a-zA-Z0-9_.-]+)*/?$`)

// program is the name of a program, and subcommand that of a command of this project's. The first argument of another program may be anything.
var program = regexp.MustCompile(`^[a-z]+[0-9]{0,2}([._-][a-z]+)*$`)

var flagName = regexp.MustCompile(`^--?[a-zA-Z][a-zA-Z0-9_.-]*$`)

var subcommand = regexp.MustCompile(`^(?:guest-token|plan|generate|doctor)$`)

// reference is a variable, $(NAME), whose value stands elsewhere.
var reference = regexp.MustCompile(`^\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)$`)
