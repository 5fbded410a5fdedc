package bundle

import "testing"

// Names of volume types and zones are text of others: in a README they must not become links, markup or cells.
func TestANameInAReasonStaysAText(t *testing.T) {
	for in, want := range map[string]string{
		"":             "",
		"it is so":     "It is so.",
		"spec.size is": "`spec.size` is.",
		"set spec.storageClasses.extra[0].name or run `a_b destroy`": "Set `spec.storageClasses.extra[0].name` or run `a_b destroy`.",
		`volume type "https://evil.example/install" is new`:          `Volume type "https&#58;//evil.example/install" is new.`,
		`volume type "www.evil.example" is new`:                      `Volume type "www&#46;evil.example" is new.`,
		"type `[a](//b)":                                             "Type \\`\\[a\\](//b).",
	} {
		if got := sentence(in); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

// A text of others between backquotes does not end them.
func TestACodeStaysACode(t *testing.T) {
	w := &text{}
	w.line("the entry `%s` of %s, %d times, in `%s`", "a`[b](//c)", "d", 2, "e\n`f")
	if want := "the entry `a'[b](//c)` of d, 2 times, in `e 'f`\n"; w.String() != want {
		t.Errorf("want %q, got %q", want, w.String())
	}
}
