//go:build cluster

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stock is what a walk must leave as it was.
type stock struct {
	Volumes, Snapshots, Backups []string            // of every project in Cinder
	Attached                    map[string][]string // volumes in Nova, by server
	Devices                     []string            // files behind loop devices
	Mounts                      map[string][]string // of volumes, by node
}

func (c *cluster) takeStock(t *testing.T) stock {
	t.Helper()
	s := stock{Attached: map[string][]string{}, Mounts: map[string][]string{}}
	s.Volumes = c.openstackList(t, "ID", "volume", "list", "--all-projects")
	s.Snapshots = c.openstackList(t, "ID", "volume", "snapshot", "list", "--all-projects")
	s.Backups = c.openstackList(t, "ID", "volume", "backup", "list", "--all-projects")
	for _, server := range nodes {
		s.Attached[server] = c.openstackList(t, "Volume ID", "server", "volume", "list", server)
		s.Mounts[server] = volumeMounts(c.onNode(t, server, "cat", "/proc/self/mounts"))
	}
	s.Devices = c.loopDevices(t)
	return s
}

// loopDevices are the files behind loop devices: volumes of the OpenStack bed, and what kubelet holds for block volumes. Others on this machine
// may have devices of their own.
func (c *cluster) loopDevices(t *testing.T) []string {
	t.Helper()
	var found []string
	for file := range strings.Lines(c.run(t, "losetup", "--noheadings", "--list", "--output", "BACK-FILE")) {
		file = strings.TrimSpace(file)
		if strings.HasPrefix(file, c.openstack+"/") || strings.HasPrefix(file, "/var/lib/kubelet/") {
			found = append(found, file)
		}
	}
	slices.Sort(found)
	return found
}

func (c *cluster) openstackList(t *testing.T, column string, args ...string) []string {
	t.Helper()
	args = append([]string{"--os-cloud", "lab-demo-admin"}, append(args, "-f", "value", "-c", column)...)
	ids := strings.Fields(c.run(t, "/usr/bin/openstack", args...))
	slices.Sort(ids)
	return ids
}

// volumeMounts are the mounts that kubelet and the driver make for volumes of the driver.
func volumeMounts(table string) []string {
	var found []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.Contains(fields[1], "kubernetes.io") && strings.Contains(fields[1], "csi") {
			found = append(found, fields[1])
		}
	}
	slices.Sort(found)
	return found
}

func (before stock) compare(t *testing.T, after stock) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the walk left something (-before +after):\n%s", diff)
	}
}

// auditLog is the API server's audit log from where the walk began.
type auditLog struct {
	path  string
	start int64
}

func (c *cluster) openAuditLog(t *testing.T) auditLog {
	t.Helper()
	path := filepath.Join(c.dir, "log", "audit.log")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return auditLog{path: path, start: info.Size()}
}

// call is what is read of an audit event (k8s.io/apiserver, audit.k8s.io/v1).
type call struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ResponseStatus   struct {
		Code   int
		Reason string
	}
	Annotations map[string]string
}

// check fails for each kind of call of our service accounts that was denied, and if they made none at all.
func (l auditLog) check(t *testing.T) {
	t.Helper()
	f, err := os.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(l.start, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	calls, denied := 0, map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e call
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", l.path, err)
		}
		if !strings.HasPrefix(e.User.Username, "system:serviceaccount:cinder-csi") {
			continue
		}
		calls++
		if e.ResponseStatus.Code == 403 || e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			denied[fmt.Sprintf("%s: %s %s", e.User.Username, e.Verb, e.RequestURI)]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Errorf("no call of the bundle's service accounts is in %s", l.path)
	}
	for what, n := range denied {
		t.Errorf("denied %d times: %s", n, what)
	}
}
