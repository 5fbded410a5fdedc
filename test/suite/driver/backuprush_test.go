package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Long backups of one tenant use the workers of external-snapshotter. A plain snapshot of another tenant waits for one of them.
func TestManyBackupsDelayAnothersSnapshotByLessThan15Seconds(t *testing.T) {
	const backups, alone, tolerable = 40, 2 * time.Second, 15 * time.Second
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		for _, resource := range []string{"volumes", "gigabytes", "snapshots", "backups", "backup_gigabytes"} {
			sim.SetQuota("demo", resource, -1)
		}
		sim.SetLatency(openstacksim.CreateSnapshot, alone) // a backup begins with one
		sim.SetLatency(openstacksim.CreateBackup, 20*time.Minute)
		d := startWith(t, sim)
		s := newSnapshotter(t, d)
		sources := make([]string, backups+1)
		for i := range sources {
			sources[i] = must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))).GetVolume().GetVolumeId()
		}
		var complete sync.WaitGroup
		for i := range backups {
			complete.Go(func() { s.add(archive(fmt.Sprint("backup-", i), sources[i])) })
		}
		// In the middle of the first calls, and much later, when the backups are retried.
		for i, after := range []time.Duration{time.Second, 10 * time.Minute} {
			time.Sleep(after)
			if took := s.add(snapshotRequest(fmt.Sprint("snapshot-", i), sources[backups])); took-alone > tolerable {
				t.Errorf("a snapshot %v after %d backups began took %v instead of %v", after, backups, took, alone)
			} else {
				t.Logf("a snapshot %v after %d backups began took %v", after, backups, took)
			}
		}
		begun := time.Now()
		complete.Wait()
		t.Logf("all backups were ready %v later, after %d calls", time.Since(begun), s.calls)
	})
}

// snapshotter has the workers and the retries of external-snapshotter, with the arguments of manifests/.
type snapshotter struct {
	driver   *instance
	workers  chan struct{}
	longest  time.Duration
	deadline time.Duration
	mu       sync.Mutex
	calls    int
}

func newSnapshotter(t *testing.T, d *instance) *snapshotter {
	t.Helper()
	text := testfile.Read(t, "../../../manifests/vanilla/controller.yaml")
	_, text, _ = bytes.Cut(text, []byte("- name: snapshotter\n"))
	text, _, _ = bytes.Cut(text, []byte("- name: livenessprobe\n"))
	// external-snapshotter's own defaults, from its README.
	arguments := map[string]string{"worker-threads": "10", "retry-interval-max": "5m", "timeout": "1m"}
	for name := range arguments {
		if m := regexp.MustCompile(`--` + name + `=(\S+)`).FindSubmatch(text); m != nil {
			arguments[name] = string(m[1])
		}
	}
	workers, err := strconv.Atoi(arguments["worker-threads"])
	longest, err2 := time.ParseDuration(arguments["retry-interval-max"])
	deadline, err3 := time.ParseDuration(arguments["timeout"])
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	return &snapshotter{driver: d, workers: make(chan struct{}, workers), longest: longest, deadline: deadline}
}

// add queues a VolumeSnapshot and gives the time until it is ready.
func (s *snapshotter) add(req *csi.CreateSnapshotRequest) time.Duration {
	begun := time.Now()
	for retry := time.Second; !s.call(req) && time.Since(begun) < time.Hour; retry = min(2*retry, s.longest) {
		time.Sleep(retry)
	}
	return time.Since(begun)
}

func (s *snapshotter) call(req *csi.CreateSnapshotRequest) bool {
	s.workers <- struct{}{}
	defer func() { <-s.workers }()
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.deadline)
	defer cancel()
	answer, err := s.driver.CreateSnapshot(ctx, req)
	return err == nil && answer.GetSnapshot().GetReadyToUse()
}
