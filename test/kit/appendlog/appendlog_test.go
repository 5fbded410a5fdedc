package appendlog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWritersFollowOneAnother(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
		err  string // part of it
	}{
		"empty":                 {"", nil, ""},
		"one":                   {"a 1 100\na 2 200\n", []string{"a"}, ""},
		"one after the other":   {"a 1 100\na 2 200\nb 1 900\n", []string{"a", "b"}, ""},
		"a line is lost":        {"a 1 100\na 3 200\n", nil, "line 2 is number 3 of writer a, want 2"},
		"the beginning is lost": {"a 2 100\n", nil, "line 1 is number 2 of writer a, want 1"},
		"a line is doubled":     {"a 1 100\na 1 100\n", nil, "line 2 is number 1 of writer a, want 2"},
		"two at once":           {"a 1 100\nb 1 110\na 2 200\n", nil, "line 3 is number 2 of writer a, but writer b has begun"},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := log.Writers()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("want the error %q, got %v", test.err, err)
			}
		})
	}
}

func TestATornLineIsAnError(t *testing.T) {
	for _, text := range []string{"a 1 100\na 2 2", "a 1\n", "\x00\x00\x00\n", "a 1 100\n\n"} {
		if log, err := Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, log)
		}
	}
}

// After a move the file has lines of the earlier pod, so the length of the file says nothing about what the present pod writes.
func TestLinesOfAWriterSinceATime(t *testing.T) {
	log, err := Parse("a 1 1000\na 2 1100\na 3 1200\nb 1 5000\nb 2 5100\n")
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[int64]map[string]int{0: {"a": 3, "b": 2}, 1100: {"a": 2, "b": 2}, 5050: {"a": 0, "b": 1}, 5101: {"a": 0, "b": 0}} {
		for writer, lines := range want {
			if got := log.Since(time.UnixMilli(since)).Of(writer); got != lines {
				t.Errorf("writer %s since %d: want %d lines, got %d", writer, since, lines, got)
			}
		}
	}
}

func TestLongestPauseBeginsWithTheLineBefore(t *testing.T) {
	log, err := Parse("a 1 1000\na 2 9000\na 3 9100\nb 1 12100\nb 2 12200\n")
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[int64]time.Duration{0: 8 * time.Second, 9050: 3 * time.Second, 12150: 100 * time.Millisecond, 20000: 0} {
		if got := log.LongestPause(time.UnixMilli(since)); got != want {
			t.Errorf("since %d: want %s, got %s", since, want, got)
		}
	}
	if got := log.Of("a"); got != 3 {
		t.Errorf("writer a: want 3 lines, got %d", got)
	}
}
