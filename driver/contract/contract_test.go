package contract

import (
	"testing"
	"time"
)

func TestTheDescriptionOfARestoredVolumeIsReadBack(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for description, want := range map[string]struct {
		token string
		sent  time.Time
		ok    bool
	}{
		DescriptionOfRestored("t0k", at):              {"t0k", at, true},
		Description + ", request t0k":                 {"t0k", time.Time{}, true}, // of earlier versions
		Description + ", request t0k, sent yesterday": {"t0k", time.Time{}, true},
		Description: {},
		"mine, request t0k, sent 2026-03-01T12:00:00Z":            {},
		" " + DescriptionOfRestored("t0k", at) + " and some more": {},
	} {
		token, sent, ok := ParseDescriptionOfRestored(description)
		if ok != want.ok || ok && (token != want.token || !sent.Equal(want.sent)) {
			t.Errorf("%q: got %q, %v, %v, want %v", description, token, sent, ok, want)
		}
	}
}
