package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Quotes hide what a text has from the check of its file. "\x25TAG" is a declared tag for the reader of the text alone.
func TestATextInADocumentHasTheBoundsOfAFile(t *testing.T) {
	var tags strings.Builder
	for i := range 30 {
		fmt.Fprintf(&tags, `\x25TAG !a%d! x\n`, i)
	}
	for name, text := range map[string]string{
		"declared tags":          tags.String() + `--- {csi: {plugin: {image: {tag: v1.36.0}}}}`,
		"aliases of a long text": `a\x3a \x26a ` + strings.Repeat("x", 2<<10) + `\nb\x3a [` + strings.Repeat(`\x2aa, `, 1<<10) + `]`,
		"items of nothing":       `a\x3a\n` + strings.Repeat(`-\n`, 400_001),
	} {
		for shape, want := range map[string]string{
			"{chart: openstack-cinder-csi, values: \"%s\"}":         "values is no YAML mapping",
			"{chart: openstack-cinder-csi, helm: {values: \"%s\"}}": "values is no YAML mapping",
		} {
			_, _, err := Import(files(fmt.Sprintf(shape, text)))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s in %.60s: want %q, got %v", name, shape, want, err)
			}
		}
		if _, err := argsOf(value{strings.NewReplacer(`\x25`, "%", `\x26`, "&", `\x2a`, "*", `\x3a`, ":", `\n`, "\n").Replace(text)}); !errors.Is(err, errType) {
			t.Errorf("%s in extraArgs: want an error, got %v", name, err)
		}
	}
}

// With the line that helm get values prints above them, values in braces are no YAML.
func TestValuesBelowTheHeadOfHelmHaveTheBoundsOfAFile(t *testing.T) {
	values := "{csi: &a {plugin: " + strings.Repeat("x", 2<<10) + "}, b: [" + strings.Repeat("*a, ", 1<<10) + "]}"
	if _, _, err := Import(files("USER-SUPPLIED VALUES:\n" + values)); err == nil || !strings.Contains(err.Error(), "aliases stand for more") {
		t.Errorf("got %v", err)
	}
}
