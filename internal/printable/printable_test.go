package printable

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/test/kit/hostile"
)

func TestWhatSteersATerminalIsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 日本 \u00a0 🙂\n\tx": "plain é 日本 \u00a0 🙂\n\tx",
		"\x1b]0;title\x07":         `\x1b]0;title\x07`,
		"a\rb\x00\x7f":             `a\x0db\x00\x7f`,
		"\u009b2J":                 `\u009b2J`,
		"\x9b2J\xff":               `\x9b2J\xff`,
		"user\u202etxt.exe\u2066":  `user\u202etxt.exe\u2066`,
		"a\u2028b\ufeff":           `a\u2028b\ufeff`,
		"\u2800\u3164\uffa0\u00ad": `\u2800\u3164\uffa0\u00ad`,
		"☁\ufe0f\u200b\U000e0041":  `☁\ufe0f\u200b\U000e0041`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
	if got := Line("a\nb\tc"); got != "a b c" {
		t.Errorf("want one line, got %q", got)
	}
	if got := Lines("\n  ", []string{"a\nb", "c"}); got != "a b\n  c" {
		t.Errorf("want a line for each item, got %q", got)
	}
	if got := string(JSON([]byte("{\n \"é\u009b\u202e\ufeff\u2028\uffff\": 1}\n"))); got != "{\n \"é\\u009b\\u202e\\ufeff\\u2028\\uffff\": 1}\n" {
		t.Errorf("want escapes of JSON, got %q", got)
	}
}

func TestAWriterKeepsCharactersWholeThatComeInPieces(t *testing.T) {
	const text = "é日🙂\u202e\u009b\x1b[2J end"
	for step := 1; step <= len(text); step++ {
		var out strings.Builder
		w := To(&out)
		for at := 0; at < len(text); at += step {
			piece := text[at:min(at+step, len(text))]
			if n, err := w.Write([]byte(piece)); err != nil || n != len(piece) {
				t.Fatal(n, err)
			}
		}
		if got := out.String(); got != Escape(text) {
			t.Errorf("in pieces of %d: want %q, got %q", step, Escape(text), got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2Jb\u202e\x9b")
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, steers) || Escape(got) != got {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// What GitHub and GitLab make links, mentions, markup or cells of.
func TestMarkdownKeepsATextAText(t *testing.T) {
	for in, want := range map[string]string{
		"standard-ssd.1":                     "standard-ssd.1",
		"https://evil.example/install-first": "https&#58;//evil.example/install-first",
		"www.evil.example":                   "www&#46;evil.example",
		`a\|b`:                               `a\\\|b`,
		"[a](b)":                             `\[a\](b)`,
		"<b>@team `x` *y* __z__\n# 1":        "&lt;b>&#64;team \\`x\\` \\*y\\* \\_\\_z\\_\\_ \\# 1",
		"a\u202eb":                           `a\\u202eb`,
	} {
		if got := Markdown(in); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

// The errors of kubectl cinder, which have texts of others.
func TestNoTextOfOthersMakesARowOfAnError(t *testing.T) {
	for _, text := range hostile.Texts() {
		hostile.Check(t, "error", func(columns int) string { return Folded("", "Error: "+text+"\n"+text, columns) })
	}
}

func TestALineIsFoldedBetweenItsWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"  12345678":        "  12345678",
		"one two  three":    "one two\n|  three",
		"a 12345678901234":  "a\n|  1234567890\n|  1234",
		"日本日本日本":            "日本日本日\n|  本",
		"1234567890 ":       "1234567890",
		"12345678 90  1234": "12345678\n|  90  1234",
	} {
		if got := Folded("", text, 13); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}
