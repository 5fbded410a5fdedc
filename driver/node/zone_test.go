package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAMovedServerKeepsTheZoneOfTheNode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "zone.json")
	const other = "b7e2d8c4-19f3-4a6e-9c0d-1e2f3a4b5c6d"
	for _, c := range []struct { // one after another: each start finds the file of the one before
		name         string
		server, zone string
		key          string
		want         string
		changed      bool
	}{
		{"the first start", vol, "az1", "k", "az1", false},
		{"again", vol, "az1", "k", "az1", false},
		{"moved", vol, "az2", "k", "az1", true},
		{"still away", vol, "az2", "k", "az1", true},
		{"the zone is not known now", vol, "", "k", "az1", true},
		{"back", vol, "az1", "k", "az1", false},
		{"under another driver name", vol, "az2", "other", "az2", false},
		{"a server made of this one's image", other, "az3", "other", "az3", false},
	} {
		var log strings.Builder
		n := &numbers{changed: c.zone == "" && c.changed} // what it was
		m := &fakeMachine{server: metadata.Server{ID: volume.ServerID(c.server), Zone: c.zone}}
		s := newServer(m, Options{TopologyKey: c.key, WithTopology: true, ZoneFile: file, Metrics: n, Log: slog.New(slog.NewTextHandler(&log, nil))})
		got, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		if err != nil || got.GetAccessibleTopology().GetSegments()[c.key] != c.want || n.changed != c.changed {
			t.Errorf("%s: want %s, changed %t, got %v, %t, %v", c.name, c.want, c.changed, got, n.changed, err)
		}
		if said := strings.Contains(log.String(), "level=ERROR") && strings.Contains(log.String(), file); said != (c.changed && c.zone != "") {
			t.Errorf("%s: want it said what to do: %t, got:\n%s", c.name, c.changed, log.String())
		}
	}
}

func TestABrokenZoneFileIsReplacedAndAMissingDirectoryIsNoError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "zone.json")
	step(t, "write", os.WriteFile(broken, []byte("{"), 0o600))
	for _, file := range []string{broken, filepath.Join(dir, "nothing", "zone.json")} {
		var log strings.Builder
		z := zoneRecord{path: file, log: slog.New(slog.NewTextHandler(&log, nil)), metrics: noMetrics{}}
		for range 2 {
			if got := z.registered(context.Background(), vol, "k", "az1"); got != "az1" {
				t.Errorf("want az1, got %s", got)
			}
		}
		if !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%s: want a warning, got %q", file, log.String())
		}
	}
	if got := (zoneRecord{path: broken, log: slog.New(slog.DiscardHandler), metrics: noMetrics{}}).registered(context.Background(), vol, "k", "az2"); got != "az1" {
		t.Errorf("want the record written again, got %s", got)
	}
}
