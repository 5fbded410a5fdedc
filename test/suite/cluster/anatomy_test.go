//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/judge/anatomy"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	repeat      = flag.Int("repeat", 3, "how often TestAnatomy measures each driver")
	anatomyFile = flag.String("anatomy", "", "the file to which TestAnatomy adds its runs")
)

// anatomyClasses serve both drivers alike. Without force-create upstream's plugin saves no volume that is in use.
const anatomyClasses = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: anatomy}
provisioner: ` + driverName + `
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: anatomy}
driver: ` + driverName + `
deletionPolicy: Delete
parameters: {force-create: "true"}
`

// measuredDriver is one of the drivers that take turns.
type measuredDriver struct {
	name      string
	frequency string // nodeStatusUpdateFrequency of kubelet; the default when empty
	workloads workloads
	install   func(t *testing.T)
}

// TestAnatomy measures where the time of four flows goes, with this driver and with upstream's plugin in turn: `make measure WHAT=anatomy`. Without PLUGIN
// it measures this driver alone.
func TestAnatomy(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	b := c.generate(t, "kustomize", endToEnd)
	b.installOnce(t)
	drivers := []measuredDriver{{"this driver", "", ownWorkloads, func(t *testing.T) {
		b.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", b.dir)
	}}}
	if os.Getenv("PLUGIN") != "" {
		u := c.upstream(t, 5) // from 5 on the log has the end of an RPC
		c.kubectl(t, "create", "secret", "generic", "cloud-config", "--namespace=kube-system", "--from-file=cloud.conf="+filepath.Join(u.openstack, "cloud.conf"))
		t.Cleanup(func() { u.leave() })
		drivers = append(drivers, measuredDriver{"upstream", "", upstreamWorkloads, func(t *testing.T) { u.kubectl(t, "apply", "-f", u.dir) }})
	}
	for _, d := range drivers {
		d.name, d.frequency = d.name+", kubelet 2 s", "2s"
		drivers = append(drivers, d)
	}
	c.apply(t, anatomyClasses)
	for range *repeat {
		for i, d := range drivers {
			c.swapTo(t, drivers, i)
			c.measure(t, d)
		}
	}
	c.kubectl(t, "delete", "storageclass/anatomy", "volumesnapshotclass/anatomy")
	c.swapTo(t, drivers, 0) // as it was, kubelet too
	if !*keep {
		b.uninstall(t)
	}
}

// leave removes what belongs to upstream's plugin alone, also after a failure. The CSIDriver has the name of this driver's.
func (u upstreamPlugin) leave() {
	ctx := context.Background() // the test's has ended
	for _, name := range upstreamManifests {
		if name != "csi-cinder-driver.yaml" {
			_, _, _ = u.try(ctx, "", "kubectl", "delete", "-f", filepath.Join(u.dir, name), "--ignore-not-found")
		}
	}
	_, _, _ = u.try(ctx, "", "kubectl", "delete", "secret", "cloud-config", "--namespace=kube-system", "--ignore-not-found")
}

// swapTo makes one of the drivers the only one. Both have the same name, so none may run while the CSIDriver is replaced.
func (c *cluster) swapTo(t *testing.T, drivers []measuredDriver, to int) {
	t.Helper()
	for _, d := range drivers {
		c.removeWorkloads(t, d.workloads)
	}
	c.kubectl(t, "delete", "csidriver", driverName, "--ignore-not-found")
	for _, node := range nodes {
		c.setStatusFrequency(t, node, drivers[to].frequency)
	}
	drivers[to].install(t)
	c.awaitDriver(t, drivers[to].workloads)
}

// setStatusFrequency sets how often kubelet looks at its node's status, and restarts kubelet if that is a change. Without the second setting kubelet
// would also write a status without a change so often.
func (c *cluster) setStatusFrequency(t *testing.T, node, frequency string) {
	t.Helper()
	path := filepath.Join(c.dir, "nodes", node, "kubelet.yaml")
	old := testfile.Text(t, path)
	text, _, _ := strings.Cut(old, "nodeStatusUpdateFrequency:")
	if frequency != "" {
		text += "nodeStatusUpdateFrequency: " + frequency + "\nnodeStatusReportFrequency: 5m\n"
	}
	if text == old {
		return
	}
	testfile.Write(t, path, text, 0o644)
	before := c.onNode(t, node, "pidof", "kubelet")
	c.onNode(t, node, append([]string{"kill"}, strings.Fields(before)...)...)
	eventually(t, patience, "kubelet of "+node+" again", func() error {
		now, _, err := c.try(t.Context(), "", filepath.Join(c.repo, "test", "bed", "cluster", "exec-node.sh"), node, "pidof", "kubelet")
		if err == nil && now == before {
			err = fmt.Errorf("it is still process %s", now)
		}
		return err
	})
	c.kubectl(t, "wait", "node/"+node, "--for=condition=Ready", atMost)
}

// measure runs the flows once. The first claim is not measured: it waits for the sidecars to become leaders.
func (c *cluster) measure(t *testing.T, d measuredDriver) {
	m := &measurer{cluster: c, driver: d, file: *anatomyFile}
	own := *c
	own.namespace = "anatomy"
	m.cluster = &own
	own.makeNamespace(t)
	own.useFor(t, "first", "anatomy")
	began := time.Now()
	on := func(name, node string) pod { return pod{name: name, claim: name, node: node} }

	m.flow(t, "claim to running pod", func() {
		own.start(t, []claim{{name: "a", gib: 1, class: "anatomy"}}, on("a", "node-az1"))
	}, "a")
	own.write(t, "a", "/data/file", "a")
	from := own.anatomyPod(t, "a")
	m.move(t, from, pod{name: "moved", claim: "a", node: "node-az1-2"})
	own.apply(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: saved, namespace: %s}
spec: {volumeSnapshotClassName: anatomy, source: {persistentVolumeClaimName: a}}
`, own.namespace))
	own.kubectl(t, "wait", "volumesnapshot/saved", "--namespace="+own.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
	m.flow(t, "snapshot restored to a running pod", func() {
		own.start(t, []claim{{name: "restored", gib: 1, class: "anatomy", from: "saved"}}, on("restored", "node-az1"))
	}, "restored")
	var claims []claim
	var pods []pod
	var names []string
	for i := range 10 {
		name := fmt.Sprintf("many-%d", i)
		claims, pods, names = append(claims, claim{name: name, gib: 1, class: "anatomy"}), append(pods, on(name, "")), append(names, name)
	}
	m.flow(t, "ten claims and pods at once", func() { own.start(t, claims, pods...) }, names...)
	m.save(t)

	own.kubectl(t, "delete", "pods,volumesnapshots,pvc", "--all", "--namespace="+own.namespace, atMost)
	eventually(t, patience, "every volume deleted", func() error {
		if left := own.volumes(t); len(left) > 0 {
			return fmt.Errorf("%d are there: %v", len(left), left)
		}
		return nil
	})
	own.kubectl(t, "delete", "namespace", own.namespace, atMost)
	fmt.Printf("measured: anatomy   %-30s %6.1f s\n", "all flows, "+d.name, time.Since(began).Seconds())
}

// measurer collects the runs of one driver in one round.
type measurer struct {
	*cluster
	driver measuredDriver
	file   string
	runs   []anatomy.Run
}

// flow runs something and takes apart what happened to each of its pods.
func (m *measurer) flow(t *testing.T, name string, do func(), pods ...string) {
	t.Helper()
	o := m.observe(t)
	do()
	var of []anatomy.Pod
	for _, pod := range pods {
		of = append(of, m.anatomyPod(t, pod))
	}
	records := o.records(t)
	for _, pod := range of {
		parts, err := records.Start(pod)
		m.add(t, name, parts, err)
	}
}

func (m *measurer) move(t *testing.T, from anatomy.Pod, to pod) {
	t.Helper()
	o := m.observe(t)
	m.deletePod(t, from.Name)
	m.start(t, nil, to)
	parts, err := o.records(t).Move(from, m.anatomyPod(t, to.name))
	m.add(t, "pod moved to another node", parts, err)
}

func (m *measurer) add(t *testing.T, flow string, parts []anatomy.Part, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s, %s: %v", flow, m.driver.name, err)
	}
	run := anatomy.Run{Flow: flow, Driver: m.driver.name, Parts: parts}
	m.runs = append(m.runs, run)
	fmt.Printf("measured: anatomy   %-40s %-12s %6.2f s\n", flow, m.driver.name, run.Seconds())
}

// save adds the runs to the file, as one more round of this driver.
func (m *measurer) save(t *testing.T) {
	t.Helper()
	if m.file == "" {
		return
	}
	var all anatomy.Measurement
	if content, err := os.ReadFile(m.file); err == nil {
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatalf("%s: %v", m.file, err)
		}
	}
	round := 1
	for _, run := range all.Runs {
		if run.Driver == m.driver.name {
			round = max(round, run.Round+1)
		}
	}
	for _, run := range m.runs {
		run.Round = round
		all.Runs = append(all.Runs, run)
	}
	all.When = time.Now().Format("2 January 2006")
	content := testenv.Value(json.MarshalIndent(all, "", " "))(t)
	testfile.Write(t, m.file, content, 0o644)
}

// anatomyPod looks up what Kubernetes made for a pod with one claim.
func (c *cluster) anatomyPod(t *testing.T, name string) anatomy.Pod {
	t.Helper()
	p := anatomy.Pod{Namespace: c.namespace, Name: name}
	in := "--namespace=" + c.namespace
	fields := strings.Fields(c.kubectl(t, "get", "pod", name, in, "-o", "jsonpath={.spec.nodeName} {.spec.volumes[0].persistentVolumeClaim.claimName}"))
	if len(fields) != 2 {
		t.Fatalf("pod %s has the node and claim %q", name, fields)
	}
	p.Node, p.Claim = fields[0], fields[1]
	ready := testenv.Value(time.Parse(time.RFC3339, c.kubectl(t, "get", "pod", name, in, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].lastTransitionTime}`)))(t)
	p.Ready = ready
	p.Volume = c.kubectl(t, "get", "pvc", p.Claim, in, "-o", "jsonpath={.spec.volumeName}")
	p.Handle = c.kubectl(t, "get", "pv", p.Volume, "-o", "jsonpath={.spec.csi.volumeHandle}")
	p.Attachment = c.kubectl(t, "get", "volumeattachments", "-o",
		fmt.Sprintf(`jsonpath={.items[?(@.spec.source.persistentVolumeName==%q)].metadata.name}`, p.Volume))
	if p.Attachment == "" || strings.Contains(p.Attachment, " ") {
		t.Fatalf("want one VolumeAttachment of %s, got %q", p.Volume, p.Attachment)
	}
	return p
}

// observation is the point of every log at which a flow began.
type observation struct {
	m     *measurer
	since time.Time
	sizes map[string]int64
}

// cloudLogs are the logs of Cinder and Nova that package anatomy reads.
func (c *cluster) cloudLogs(t *testing.T) (volume, api string, compute []string) {
	t.Helper()
	logs := filepath.Join(c.openstack, "log")
	compute, err := filepath.Glob(filepath.Join(logs, "nova-compute-*.log"))
	if err != nil || len(compute) == 0 {
		t.Fatalf("no log of nova-compute in %s: %v", logs, err)
	}
	return filepath.Join(logs, "cinder-volume.log"), filepath.Join(logs, "cinder-api.log"), compute
}

func (m *measurer) auditLog() string { return filepath.Join(m.dir, "log", "audit.log") }

func (m *measurer) observe(t *testing.T) observation {
	t.Helper()
	o := observation{m, time.Now(), map[string]int64{}}
	volume, api, compute := m.cloudLogs(t)
	for _, path := range append(compute, volume, api, m.auditLog()) {
		info := testenv.Value(os.Stat(path))(t)
		o.sizes[path] = info.Size()
	}
	return o
}

// records reads what every log has had since.
func (o observation) records(t *testing.T) anatomy.Records {
	t.Helper()
	open := func(path string) io.Reader {
		f := testenv.Value(os.Open(path))(t)
		t.Cleanup(func() { f.Close() })
		testenv.Value(f.Seek(o.sizes[path], io.SeekStart))(t)
		return f
	}
	var r anatomy.Records
	r.Audit = testenv.Value(anatomy.ReadAudit(open(o.m.auditLog())))(t)
	var text strings.Builder
	for _, of := range [][]string{o.m.driver.workloads.deployment, o.m.driver.workloads.daemonset} {
		text.WriteString(o.m.run(t, "kubectl", "logs", "--namespace="+of[1], "--selector=app="+of[0], "--container="+o.m.driver.workloads.container,
			"--prefix", "--timestamps", "--tail=-1", "--max-log-requests=20", "--since-time="+o.since.UTC().Format(time.RFC3339)))
	}
	r.RPCs = testenv.Value(anatomy.ReadRPCs(strings.NewReader(text.String())))(t)
	volume, api, compute := o.m.cloudLogs(t)
	var readers []io.Reader
	for _, path := range compute {
		readers = append(readers, open(path))
	}
	r.Work = testenv.Value(anatomy.ReadWork(open(volume), open(api), readers...))(t)
	return r
}
