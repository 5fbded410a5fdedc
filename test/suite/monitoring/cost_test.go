//go:build monitoring

package monitoring

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var before = flag.String("before", "", "a commit of this repository to compare with")

// The aims. They are those of the project, and no limits of any standard.
const (
	aimScrape = 20 * time.Millisecond
	aimRSS    = 20 << 20
	aimAnon   = 8 << 20
	aimSize   = 25 << 20
)

// figures are the costs of one build of the driver.
type figures struct {
	scrape, slowest time.Duration // median and maximum, with 1,000 attached volumes
	page            int           // bytes
	rss, anon, file int           // bytes, of the node role: all, private, and pages of the program
	size            int           // bytes, of the program
}

func TestCostOfMetrics(t *testing.T) {
	now := measure(t, filepath.Join(bin, "cinder-csi-driver"))
	was := figures{}
	if *before != "" {
		was = measure(t, buildAt(t, *before))
	}
	t.Logf("| %-36s | %-10s | %10s | %10s |", "figure", "aim", "before", "now")
	show := func(name, aim string, value func(f figures) string) {
		old := "-"
		if *before != "" {
			old = value(was)
		}
		t.Logf("| %-36s | %-10s | %10s | %10s |", name, aim, old, value(now))
	}
	mib := func(n int) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
	show("scrape, 1,000 volumes, median of 50", aimScrape.String(), func(f figures) string { return f.scrape.Round(100 * time.Microsecond).String() })
	show("scrape, 1,000 volumes, slowest", "", func(f figures) string { return f.slowest.Round(100 * time.Microsecond).String() })
	show("page of metrics", "", func(f figures) string { return fmt.Sprintf("%d KiB", f.page/1024) })
	show("node role, RSS", mib(aimRSS), func(f figures) string { return mib(f.rss) })
	show("node role, RssAnon", mib(aimAnon), func(f figures) string { return mib(f.anon) })
	show("node role, RssFile", "", func(f figures) string { return mib(f.file) })
	show("driver, size of the program", mib(aimSize), func(f figures) string { return mib(f.size) })
	if now.scrape > aimScrape {
		t.Errorf("a scrape takes %s; want at most %s", now.scrape, aimScrape)
	}
}

func measure(t *testing.T, program string) (f figures) {
	t.Helper()
	info := testenv.Value(os.Stat(program))(t)
	f.size = int(info.Size())
	dir, cloud := largeCloud(t)
	controller := launchController(t, program, dir)
	fill(t, controller)
	var times []time.Duration
	for range 20 {
		time.Sleep(time.Second) // requests of a second share a page
		begun := time.Now()
		text := testenv.Value(get("http://" + controller.web + "/metrics"))(t)
		times = append(times, time.Since(begun))
		f.page = len(text)
	}
	slices.Sort(times)
	f.scrape, f.slowest = times[len(times)/2], times[len(times)-1]

	node := launchNode(t, program, cloud)
	for range 10 {
		testenv.Value(get("http://" + node.web + "/metrics"))(t)
	}
	f.rss, f.anon, f.file = status(t, node.pid, "VmRSS"), status(t, node.pid, "RssAnon"), status(t, node.pid, "RssFile")
	return f
}

// largeCloud is a cloud in this process with room for 1,000 volumes, and the directory with its cloud.conf.
func largeCloud(t *testing.T) (dir, address string) {
	t.Helper()
	config := openstacksim.Default()
	config.Projects[1].Quota = map[string]int{"volumes": -1, "gigabytes": -1}
	config.MaxDisks = 1000
	sim := openstacksim.New(config)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	dir = t.TempDir()
	testfile.Write(t, filepath.Join(dir, "cloud.conf"), sim.CloudConf(server.URL), 0o600)
	return dir, server.URL
}

// fill creates and attaches 1,000 volumes. Each is then deleted while it is attached, so that as many operations are pending.
func fill(t *testing.T, controller *process) {
	t.Helper()
	const volumes, workers = 1000, 50
	servers := openstacksim.Default().Servers
	c := csi.NewControllerClient(controller)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range volumes / workers {
				id, err := createOn(t.Context(), controller, fmt.Sprintf("pvc-%d-%d", w, i))
				if err != nil {
					t.Error(err)
					return
				}
				node := servers[w%len(servers)].ID
				if _, err := c.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: csitest.Mounted("")}); err != nil {
					t.Error(err)
					return
				}
				if _, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err == nil {
					t.Errorf("volume %s was deleted while it was attached", id)
				}
			}
		})
	}
	all.Wait()
}

// status is a figure of /proc/PID/status in bytes.
func status(t *testing.T, pid int, name string) int {
	t.Helper()
	text := testfile.Text(t, fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(text, name+":")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s of process %d: %v", name, pid, err)
	}
	return kib << 10
}

// buildAt builds the driver of a commit.
func buildAt(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	for _, command := range []*exec.Cmd{
		exec.Command("git", "-C", "../../..", "archive", "--output="+archive, commit),
		exec.Command("tar", "-xf", archive, "-C", dir),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	// As that commit builds it: flags of the build change the size.
	build := exec.Command("make", "-C", dir, "build", "PROGRAMS=cinder-csi-driver")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "cinder-csi-driver")
}
