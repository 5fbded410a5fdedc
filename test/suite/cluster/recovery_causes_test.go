//go:build cluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// named is a situation whose cause the driver names: the same ID stands everywhere.
type named struct {
	situation
	described string // the object with the event of the error, as kubectl describe takes it
	half      string // of the driver that returns the error
	node      string // of that half, if it is the node role
}

var causes = []named{
	{situation{name: "quota", cause: "quota.gigabytes", begin: begin(workloadSituations, "quota")}, "pvc/quota", "controller", ""},
	{situation{name: "type", cause: "create.type", begin: unknownType}, "pvc/type", "controller", ""},
	{situation{name: "foreign", cause: "attach.elsewhere", begin: foreignServer}, "pod/foreign", "controller", ""},
	{situation{name: "reserved", cause: "attach.reserved", begin: reserved}, "pod/reserved", "controller", ""},
	{situation{name: "volume-error", cause: "volume.error", begin: begin(workloadSituations, "volume-error")}, "pod/volume-error", "controller", ""},
	{situation{name: "mount-fails", cause: "fs.unknown-content", begin: wrongFileSystem}, "pod/mount-fails", "node", "node-az1"},
	{situation{name: "credentials", cause: "cloud.credentials", begin: deletedCredential}, "pvc/credentials", "controller", ""},
	{situation{name: "rights", cause: "cloud.token-refused", begin: withoutAccess}, "pvc/rights", "controller", ""},
}

// begin is how a situation of a list begins.
func begin(list []situation, name string) func(*testing.T, *cluster) func() error {
	for _, s := range list {
		if s.name == name {
			return s.begin
		}
	}
	panic("no situation " + name)
}

// nameCauses makes each situation and reads its ID in the event, in kubectl cinder, in the metric and in the log.
func nameCauses(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.install(t, "first", false)
	shop := r.in("shop")
	shop.makeNamespace(t)
	r.step(t, "bundle installed")
	for _, n := range causes {
		shop.agree(t, n)
	}
	r.began = time.Now()
	shop.nameGaps(t)
	r.step(t, "each list names its gap")
	r.kubectl(t, "delete", "pods", "--all", "--namespace=shop", atMost)
	r.deleteTeam(t, "shop")
	r.remove(t)
	r.step(t, "everything deleted")
}

// agree makes a situation, and waits until the same ID stands in every place.
func (c *cluster) agree(t *testing.T, n named) {
	t.Helper()
	end := n.begin(t, c)
	began := time.Now()
	mark := "[" + n.cause + "]"
	err := await(t.Context(), answerWithin, func() error {
		for place, read := range map[string]func() (string, error){
			"kubectl describe " + n.described: func() (string, error) {
				return c.within("kubectl", "describe", n.described, "--namespace="+c.namespace)
			},
			"the log of the driver": func() (string, error) { return c.logOf(n) },
			"the metric":            func() (string, error) { return c.errorsOf(n) },
		} {
			want := map[string]string{"the log of the driver": "cause=" + n.cause + " ", "the metric": `{cause="` + n.cause + `"} `}[place]
			if want == "" {
				want = mark
			}
			if text, err := read(); err != nil || !strings.Contains(text, want) {
				return fmt.Errorf("situation %s: %s has no %q: %v\n%s", n.name, place, want, err, text)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	fmt.Printf("measured: cause %-20s in event, log and metric after %.1f s\n", n.cause, time.Since(began).Seconds())
	n.situation.begin = func(*testing.T, *cluster) func() error { return nil } // it has begun
	c.answer(t, n.situation)
	message := c.event(t, n.described, mark)
	fmt.Printf("cause %s: %s\n", n.cause, message)
	// The whole message of the event stands in place of the ID.
	if text := c.kubectl(t, "cinder", "explain", message); !strings.Contains(text, "cause:   "+n.cause+"\n") || !strings.Contains(text, "from:    the driver") {
		t.Errorf("kubectl cinder explain %q: %s", message, text)
	}
	if end == nil {
		return
	}
	testenv.Check(t, end())
}

// within is the output of a command that may fail.
func (c *cluster) within(program string, args ...string) (string, error) {
	out, _, err := c.try(context.Background(), "", program, args...)
	return out, err
}

// event is the message of an event of an object with a mark.
func (c *cluster) event(t *testing.T, object, mark string) string {
	t.Helper()
	_, name, _ := strings.Cut(object, "/")
	out := c.kubectl(t, "get", "events", "--namespace="+c.namespace, "--field-selector=involvedObject.name="+name, "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		if strings.Contains(line, mark) {
			return strings.TrimSpace(line)
		}
	}
	t.Errorf("no event of %s has %s: %s", object, mark, out)
	return mark
}

// logOf is the log of the half of the driver that returns the error.
func (c *cluster) logOf(n named) (string, error) {
	return c.within("kubectl", "logs", "--namespace="+namespaces[n.half], "--selector=app=cinder-csi-"+n.half, "--container=driver", "--tail=-1")
}

// errorsOf are the metrics of errors, of all pods of that half that can have returned it.
func (c *cluster) errorsOf(n named) (string, error) {
	if n.node != "" {
		// Without a monitoring the port is open on the node only.
		return c.within(c.repo+"/test/bed/cluster/exec-node.sh", n.node, "curl", "--silent", "--fail", "http://127.0.0.1:29603/metrics")
	}
	names, err := c.within("kubectl", "get", "pods", "--namespace="+namespaces["controller"], "--selector=app=cinder-csi-controller", "-o", "name")
	var all strings.Builder
	for _, name := range strings.Fields(names) {
		page, failed := c.within("kubectl", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", namespaces["controller"], strings.TrimPrefix(name, "pod/")))
		err = errors.Join(err, failed)
		all.WriteString(page)
	}
	return strings.Join(regexp.MustCompile(`(?m)^cinder_csi_rpc_errors_total\{cause="[^"]+"\} [1-9].*$`).FindAllString(all.String(), -1), "\n"), err
}

// unknownType is a class with a volume type that the cloud does not have.
func unknownType(t *testing.T, c *cluster) func() error {
	c.apply(t, strings.NewReplacer("recovery-xfs", "unknown-type", "{csi.storage.k8s.io/fstype: xfs}", "{type: no-such-type}").Replace(recoveryClass))
	c.create(t, []claim{{name: "type", gib: 1, class: "unknown-type"}}, pod{name: "type", claim: "type", node: "node-az1"})
	return func() error {
		_, err := c.within("kubectl", "delete", "storageclass/unknown-type")
		return errors.Join(err, c.deletedPod("type"))
	}
}

// foreignServer attaches a volume by hand to another server than that of the pod: Kubernetes does not know that.
func foreignServer(t *testing.T, c *cluster) func() error {
	id := c.unused(t, "foreign", "node-az1")
	c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo", "server", "add", "volume", "node-az1-2", id)
	c.awaitStatus(t, id, "in-use")
	c.create(t, nil, pod{name: "foreign", claim: "foreign", node: "node-az1"})
	return func() error {
		_, err := c.within("/usr/bin/openstack", "--os-cloud", "lab-demo", "server", "remove", "volume", "node-az1-2", id)
		return errors.Join(err, c.becomesReady("foreign"))
	}
}

// reserved is a volume with an attachment in Cinder that Nova does not list: what a failed live migration leaves, for instance.
func reserved(t *testing.T, c *cluster) func() error {
	id := c.unused(t, "reserved", "node-az1")
	server := strings.TrimSpace(c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "server", "show", "node-az1", "-f", "value", "-c", "id"))
	attachments := func(args ...string) []string {
		return append([]string{"--os-cloud", "lab-demo-admin", "--os-volume-api-version", "3.44", "volume", "attachment"}, args...)
	}
	made := strings.TrimSpace(c.run(t, "/usr/bin/openstack", attachments("create", id, server, "--connect", "--host", "somewhere", "--mountpoint", "/dev/vdz", "-f", "value", "-c", "ID")...))
	c.run(t, "/usr/bin/openstack", attachments("complete", made)...)
	c.create(t, nil, pod{name: "reserved", claim: "reserved", node: "node-az1"})
	return func() error {
		_, err := c.within("/usr/bin/openstack", attachments("delete", made)...)
		return errors.Join(err, c.becomesReady("reserved"))
	}
}

// withoutAccess gives the driver an application credential whose access rules lack Cinder: its administrator took that right away.
func withoutAccess(t *testing.T, c *cluster) func() error {
	return c.otherCredential(t, "rights", "--access-rules", `[{"service": "compute", "method": "GET", "path": "/v2.1/**"}]`)
}

// gap is what somebody took away, and what the lists say then.
type gap struct {
	name  string
	begin func(t *testing.T, c *cluster) (end func() error)
	as    string            // the user of the commands
	says  map[string]string // by command, without the flags that all have
}

const (
	gapReader         = "gap-reader"
	unreadAttachments = "the VolumeAttachments"
	unknownServer     = "the server of node node-az2"
)

var gaps = []gap{
	{
		name: "rights of the API taken away", as: gapReader, begin: takeRights,
		says: map[string]string{"list --wrong": unreadAttachments, "lost": unreadAttachments, "volume shop/gap": unreadAttachments, "node node-az2": unreadAttachments},
	},
	{
		name: "CSINode gone",
		says: map[string]string{"list --wrong": unknownServer, "lost": unknownServer, "volume shop/gap": "Cause: node.unregistered ", "node node-az2": unknownServer},
		begin: func(t *testing.T, c *cluster) func() error {
			c.kubectl(t, "delete", "csinode", "node-az2")
			return nil
		},
	},
	{
		name: "Node deleted",
		says: map[string]string{"list --wrong": unknownServer, "lost": unknownServer, "volume shop/gap": "Cause: node.not-ready "},
		begin: func(t *testing.T, c *cluster) func() error {
			t.Cleanup(func() { _ = c.power(context.Background(), "on", "node-az2") })
			c.kubectl(t, "delete", "node", "node-az2")
			return func() error {
				if err := c.power(context.Background(), "off", "node-az2"); err != nil {
					return err
				}
				return c.power(context.Background(), "on", "node-az2")
			}
		},
	},
}

// takeRights has a user who may read everything but attachments and CSINodes.
func takeRights(t *testing.T, c *cluster) func() error {
	c.apply(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gap-reader}
rules:
- {apiGroups: [""], resources: [persistentvolumeclaims, persistentvolumes, pods, nodes, events], verbs: [get, list]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses, csidrivers], verbs: [get, list]}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshots, volumesnapshotcontents], verbs: [get, list]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterrolebindings], verbs: [get, list]}
- {apiGroups: [""], resources: [pods/portforward], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gap-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gap-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: gap-reader}]
`)
	return func() error {
		_, err := c.within("kubectl", "delete", "clusterrole/gap-reader", "clusterrolebinding/gap-reader")
		return err
	}
}

// nameGaps has a pod with a volume on the only node of a zone, and takes away what the lists compare it with.
func (c *cluster) nameGaps(t *testing.T) {
	c.start(t, []claim{{name: "gap", gib: 1}}, pod{name: "gap", claim: "gap", node: "node-az2"})
	for _, g := range gaps {
		end := g.begin(t, c)
		for command, says := range g.says {
			args := append([]string{"cinder"}, strings.Fields(command)...)
			args = append(args, "--os-cloud", "lab-demo")
			if g.as != "" {
				args = append(args, "--as", g.as)
			}
			out, messages, err := c.try(t.Context(), "", "kubectl", args...)
			var exit *exec.ExitError
			text := strings.Join(strings.Fields(out+messages), " ")
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(text, says) {
				t.Errorf("%s: kubectl %s: %v; want the exit code 1 and %q in:\n%s%s", g.name, strings.Join(args, " "), err, says, out, messages)
				continue
			}
			fmt.Printf("measured: gap %-30s kubectl cinder %-18s exit 1, names %q\n", g.name, command, says)
		}
		if end == nil {
			continue
		}
		testenv.Check(t, end())
	}
	c.awaitDriver(t, c.driver)
}
