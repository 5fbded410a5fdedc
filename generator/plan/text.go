package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// checkTexts refuses configured texts with a variable, a template, control characters or a secret. Nothing fills these in later, and
// not every reader of YAML takes control characters. It returns false if there is a secret. Then no other message may follow,
// because messages quote the text that is wrong.
func (d *decider) checkTexts() bool {
	text, err := json.Marshal(map[string]any{"metadata": d.dist.Metadata, "spec": d.given})
	var config any
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	var secrets []string
	refuse := func(path, why string) {
		if secret.InValue("", path) != "" {
			return // a key in the path is the secret, and has a line of its own
		}
		line := path + ": " + why + ", and the generator writes no secret; put it into clouds.yaml, or into a Secret of your own"
		if !slices.Contains(secrets, line) {
			secrets = append(secrets, line)
		}
	}
	texts("", config, func(path, s string) {
		if kind := secret.InValue(path[strings.LastIndex(path, ".")+1:], s); kind != "" {
			refuse(path, "holds "+kind)
		}
		if namesSecret(path, s) {
			refuse(path+"."+s, "may hold a secret by its name")
		}
		if problem := unwritable(s); problem != "" && (path != caBundle || problem != controlCharacter) && (problem != unfilled && problem != unrendered || !isGlob(path) && !isTemplate(path)) && (problem != unrendered || !strings.Contains(path, ".podAnnotations.")) { // an agent renders those
			d.problem("%s: %s", path, problem)
		}
	})
	if len(secrets) > 0 {
		d.problems = secrets
	}
	return len(secrets) == 0
}

// namesSecret is whether a name that a person chose says that its value is a secret. In is the object of the name, such as spec.roles.node.env.
func namesSecret(in, name string) bool {
	lower := strings.ToLower(in)
	switch {
	case strings.HasSuffix(lower, ".env"):
		return secret.Variable(name) == secret.Secret
	case strings.HasSuffix(lower, "metadata"), strings.HasSuffix(lower, ".parameters") && strings.HasPrefix(name, "metadata."):
		return secret.Metadata(name) == secret.Secret
	case strings.HasSuffix(lower, "annotations"), strings.HasSuffix(lower, "labels"):
		return secret.Annotation(name) == secret.Secret
	}
	return false
}

const (
	controlCharacter = "holds a control character"
	unfilled         = "holds ${, as of a variable that nothing filled in"
	unrendered       = "holds {{, as of a template that nothing rendered"
)

// isGlob is whether a text is a pattern over the names of volume types, which may hold anything. No object of a bundle has it.
func isGlob(path string) bool {
	return strings.HasPrefix(path, "spec.storageClasses.include[") || strings.HasPrefix(path, "spec.storageClasses.exclude[")
}

// isTemplate is whether a text is a parameter of a class in which the driver fills in the placeholders that it knows. The driver's own parser
// refuses every other.
func isTemplate(path string) bool {
	_, parameter, found := strings.Cut(path, ".parameters.")
	return found && strings.HasPrefix(path, "spec.storageClasses.") && contract.IsTemplate(parameter)
}

// unwritable says why a text must not be in a bundle, empty if it may. YAML has no control characters, and a private key is a
// secret. Verification takes ${ for a variable that nobody filled in.
func unwritable(s string) string {
	switch {
	case secret.In(s) != "":
		return "holds " + secret.In(s)
	case strings.Contains(s, "${"):
		return unfilled
	case strings.Contains(s, "{{"):
		return unrendered
	case strings.ContainsFunc(s, unicode.IsControl), !utf8.ValidString(s), strings.ContainsAny(s, "\ufeff\ufffe\uffff"):
		return controlCharacter
	}
	return ""
}

// texts yields every text of a document with its path, the keys of objects too, with their object's.
func texts(path string, value any, each func(path, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(path, key)
			texts(strings.TrimPrefix(path+"."+key, "."), v[key], each)
		}
	case []any:
		for i, e := range v {
			texts(item(path, i), e, each)
		}
	case string:
		each(path, v)
	}
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
