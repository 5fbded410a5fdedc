//go:build hypershift

package hypershift

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The pods have network namespaces of their own, so that their ports are not those of the machine. Addresses are of the range for benchmarks
// (RFC 2544), which nobody routes; the beds of test/bed/openstack and test/bed/cluster use other parts of it.
const (
	bridge      = "cinder-hs"
	gateway     = "198.18.176.1"
	podNetwork  = "198.18.176"
	prefixWidth = "/24"
)

// network makes the bridge, with the address that API servers and clouds listen on.
func network(t *testing.T) {
	t.Helper()
	_ = exec.Command("ip", "link", "del", bridge).Run() // of a run that was killed
	ip(t, "link", "add", bridge, "type", "bridge")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", bridge).Run() })
	ip(t, "address", "add", gateway+prefixWidth, "dev", bridge)
	ip(t, "link", "set", bridge, "up")
}

// podNamespace makes the network of a pod, and gives its name and address.
func podNamespace(t *testing.T, number int) (name, address string) {
	t.Helper()
	name, address = fmt.Sprintf("%s-%d", bridge, number), fmt.Sprintf("%s.%d", podNetwork, number+10)
	link := fmt.Sprintf("cinder-hs%d", number)
	_ = exec.Command("ip", "netns", "del", name).Run() // of a run that was killed
	_ = exec.Command("ip", "link", "del", link).Run()
	ip(t, "netns", "add", name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	ip(t, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
	ip(t, "link", "set", link, "master", bridge, "up")
	ip(t, "-n", name, "address", "add", address+prefixWidth, "dev", "eth0")
	ip(t, "-n", name, "link", "set", "eth0", "up")
	ip(t, "-n", name, "link", "set", "lo", "up")
	ip(t, "-n", name, "route", "add", "198.18.0.0/15", "via", gateway)
	return name, address
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// eventually asks until there is no error.
func eventually(t *testing.T, timeout time.Duration, what string, ask func() error) {
	t.Helper()
	testenv.Eventually(t, timeout, 200*time.Millisecond, what, ask)
}
