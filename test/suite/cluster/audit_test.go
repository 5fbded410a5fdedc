//go:build cluster

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/judge/rights"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
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
	commands := []string{"volume list --all-projects -c ID", "volume snapshot list --all-projects -c ID", "volume backup list --all-projects -c ID"}
	for _, server := range nodes {
		commands = append(commands, "server volume list "+server)
	}
	lists := c.openstackLists(t, commands)
	s.Volumes, s.Snapshots, s.Backups = lists[0], lists[1], lists[2]
	for i, server := range nodes {
		s.Attached[server] = lists[3+i]
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

// openstackLists are the IDs that each command lists. One process runs all of them: its start takes longer than its requests.
func (c *cluster) openstackLists(t *testing.T, commands []string) (lists [][]string) {
	t.Helper()
	stdin := strings.Join(commands, " -f json\n") + " -f json\n"
	out, _, err := c.try(t.Context(), stdin, "env", "OS_CLOUD=lab-demo-admin", "/usr/bin/openstack")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	for range commands {
		var rows []map[string]string
		if err := decoder.Decode(&rows); err != nil {
			t.Fatalf("%q: %v\n%s", commands, err, out)
		}
		ids := []string{}
		for _, row := range rows {
			ids = append(ids, cmp.Or(row["Volume ID"], row["ID"]))
		}
		slices.Sort(ids)
		lists = append(lists, ids)
	}
	return lists
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
	if diff := gocmp.Diff(before, after); diff != "" {
		t.Errorf("the walk left something (-before +after):\n%s", diff)
	}
}

// auditLog is the API server's audit log since the walk began.
type auditLog struct {
	*cluster
	path       string
	since      time.Time
	except     []period // when the driver was replaced: its roles go before its last pod
	namespaces []string // of the bundle; those of a bundle without keys when empty
}

type period struct{ from, to time.Time }

func (p period) has(at time.Time) bool { return at.After(p.from) && at.Before(p.to) }

func (c *cluster) openAuditLog(t *testing.T) auditLog {
	t.Helper()
	return auditLog{cluster: c, path: filepath.Join(c.dir, "log", "audit.log"), since: time.Now()}
}

// check compares the calls of our service accounts with what the installed bundle grants. It fails for each call that was denied, for each that
// only another program's role grants, and if there are no calls at all.
func (l auditLog) check(t *testing.T) (granted []rights.Grant, used rights.Result) {
	t.Helper()
	out := l.kubectl(t, "get", "clusterroles,roles,clusterrolebindings,rolebindings", "--all-namespaces", "--selector=app.kubernetes.io/name=cinder-csi", "-o", "json")
	granted = testenv.Value(rights.Granted([]byte(out)))(t)
	calls := testenv.Value(rights.Read(l.path, l.since, "system:serviceaccount:cinder-csi"))(t)
	if len(l.namespaces) == 0 {
		l.namespaces = []string{namespaces["controller"], namespaces["node"]}
	}
	var ours []rights.Call
	for _, call := range calls {
		if namespace, _, _ := strings.Cut(call.Account(), "/"); !slices.Contains(l.namespaces, namespace) {
			continue
		}
		if !slices.ContainsFunc(l.except, func(p period) bool { return p.has(call.RequestReceivedTimestamp) }) {
			ours = append(ours, call)
		}
	}
	used = rights.Compare(granted, ours)
	if used.Calls == 0 {
		t.Errorf("no call of the bundle's service accounts is in %s", l.path)
	}
	for _, finding := range used.Findings {
		t.Error(finding)
	}
	return granted, used
}

// unusedRights has a reason for each right that a full run need not use, and usedRights has those that the last run with -update used.
const (
	unusedRights = "unused-rights.txt"
	usedRights   = "testdata/used-rights.txt"
)

// checkUnused fails for each right that a full run did not use and that no reason explains. With -update it writes down what was used.
func (l auditLog) checkUnused(t *testing.T, granted []rights.Grant, used rights.Result) {
	t.Helper()
	text := testfile.Text(t, unusedRights)
	reasons, err := rights.ParseReasons(text)
	if err != nil {
		t.Fatalf("%s: %v", unusedRights, err)
	}
	for _, finding := range used.Unused(granted, reasons) {
		t.Error(finding)
	}
	fmt.Printf("rights: %d calls, %d rights granted, %d used, %d explained\n", used.Calls, len(granted), len(used.Used), len(reasons))
	if !*update {
		return
	}
	testfile.Write(t, usedRights, rights.Format(used), 0o644)
}
