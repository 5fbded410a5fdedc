package contract

import (
	"fmt"
	"strings"
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

func TestTheMetadataOfAnObjectHasABound(t *testing.T) {
	entries := func(n, length int) map[string]string {
		metadata := map[string]string{}
		for i := range n {
			metadata[fmt.Sprintf("%04d", i)] = strings.Repeat("x", length)
		}
		return metadata
	}
	for name, test := range map[string]struct {
		metadata map[string]string
		refused  string
	}{
		"none":                     {},
		"as many entries as may":   {entries(maxEntries, 1), ""},
		"one entry more":           {entries(maxEntries+1, 1), "257 entries"},
		"as many bytes as may":     {entries(128, 246), ""},
		"more bytes":               {entries(128, 250), "bytes as Cinder writes it"},
		"letters that need escape": {map[string]string{"a": strings.Repeat("ä", maxAllMetadata/6)}, "bytes as Cinder writes it"},
	} {
		err := CheckMetadataSize(test.metadata)
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
