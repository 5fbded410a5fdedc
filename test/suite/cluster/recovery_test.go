//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// rehearsals are disasters, and the pages and commands that put them right: `make test-cluster CASE=recovery`. Each begins and ends with the bundle installed and
// no volume, and works in the namespaces shop and bank. They are not part of `make test-cluster CASE=e2e`, since they take the cluster from everybody else.
var rehearsals = []scenario{
	{"the cluster is lost and a new one takes its volumes", loseCluster},
	{"etcd is restored from an older backup", restoreEtcd},
	{"a volume is detached and one deleted behind Kubernetes", changeBehind},
	{"volumes are given to another project", transfer},
	{"volumes move to another cloud by backups", moveToAnotherCloud},
	{"one command answers each situation", answerSituations},
	{"a cause has one ID everywhere and a list names its gaps", nameCauses},
}

// TestRecovery installs a bundle and tries one rehearsal after the other. After a failure the bed gets a new cluster and
// loses the volumes of the rehearsal, so the next user finds it empty.
func TestRecovery(t *testing.T) {
	c := running(t)
	r := &recovery{cluster: c}
	r.empty(t)
	before := c.takeStock(t)
	for _, rehearsal := range rehearsals {
		t.Run(rehearsal.name, func(t *testing.T) {
			t.Cleanup(func() { r.putRight(t) })
			t.Cleanup(func() { c.diagnose(t) })
			began := time.Now()
			rehearsal.run(t, c)
			fmt.Printf("measured: recovery  %-62s %6.1f s\n", rehearsal.name, time.Since(began).Seconds())
			before.compare(t, c.takeStock(t))
		})
	}
}

// recovery is a bundle and the data of its users.
type recovery struct {
	*cluster
	bundle *bundle
	began  time.Time // of the step
	data   []datum
}

// teams are the namespaces of the users.
var teams = []string{"shop", "bank"}

// datum is a claim with known bytes.
type datum struct {
	claim
	namespace, zone, sum string
}

func (d datum) key() string { return d.namespace + "/" + d.name }

// file is where the pod has the bytes.
func (d datum) file() string {
	if d.mode == "Block" {
		return "/dev/data"
	}
	return "/data/file"
}

// recoveryDistribution has the ID of a cluster. A protected one refuses the volumes of others.
func recoveryDistribution(id string, protected bool) string {
	protect := "disabled"
	if protected {
		protect = "enabled"
	}
	return fmt.Sprintf(`apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: recovery}
spec:
  kubernetesVersion: "1.37"
  clusterID: %s
  driver: {protectOtherClusters: %s}
  snapshots: {backup: enabled}
  images:
    registry: mirror.invalid
`, id, protect)
}

// step prints how long a step took.
func (r *recovery) step(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Printf("measured: recovery  - %-60s %6.1f s\n", fmt.Sprintf(format, args...), time.Since(r.began).Seconds())
	r.began = time.Now()
}

// install installs a bundle with a cluster ID.
func (r *recovery) install(t *testing.T, id string, protected bool) {
	t.Helper()
	r.installAs(t, recoveryDistribution(id, protected))
}

// installAs generates the bundle of a Distribution and installs it by its README.
func (r *recovery) installAs(t *testing.T, distribution string) {
	t.Helper()
	own := *r.cluster
	own.work = t.TempDir()
	r.bundle = own.generate(t, "kustomize", distribution)
	own.loadImages(t, r.bundle.objects(t, "kustomize"), map[string]bool{})
	r.bundle.follow(t, "The credentials")
	r.bundle.install(t)
	r.apply(t, recoveryClass)
}

// recoveryClass is for XFS. The reclaim policy Delete is that of the default class, too.
const recoveryClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: recovery-xfs}
provisioner: ` + driverName + `
parameters: {csi.storage.k8s.io/fstype: xfs}
volumeBindingMode: WaitForFirstConsumer
`

// in is the cluster for a namespace.
func (c *cluster) in(namespace string) *cluster {
	own := *c
	own.namespace = namespace
	return &own
}

// fill makes a claim of each kind in each zone, and writes bytes to each.
func (r *recovery) fill(t *testing.T) {
	t.Helper()
	r.fillIn(t, zones...)
}

// fillIn is fill with a zone for each team.
func (r *recovery) fillIn(t *testing.T, zones ...string) {
	t.Helper()
	r.data = nil
	for i, namespace := range teams {
		zone := zones[i]
		r.data = append(r.data,
			datum{claim: claim{name: "ext4", gib: 1}, namespace: namespace, zone: zone},
			datum{claim: claim{name: "xfs", gib: 1, class: "recovery-xfs"}, namespace: namespace, zone: zone},
			datum{claim: claim{name: "raw", gib: 1, mode: "Block"}, namespace: namespace, zone: zone})
		r.in(namespace).makeNamespace(t)
	}
	for _, d := range r.data {
		r.in(d.namespace).create(t, []claim{d.claim}, d.pod())
	}
	for i, d := range r.data {
		r.ready(t, d)
		r.data[i].sum = r.in(d.namespace).write(t, d.name, d.file(), d.key())
	}
}

func (d datum) pod() pod {
	return pod{name: d.name, claim: d.name, zone: d.zone, block: d.mode == "Block"}
}

func (r *recovery) ready(t *testing.T, d datum) {
	t.Helper()
	r.kubectl(t, "wait", "--namespace="+d.namespace, "--for=condition=Ready", atMost, "pod/"+d.name)
}

// read starts a pod for each claim, and compares all bytes.
func (r *recovery) read(t *testing.T) {
	t.Helper()
	for _, d := range r.data {
		r.in(d.namespace).create(t, nil, d.pod())
	}
	for _, d := range r.data {
		r.ready(t, d)
		r.in(d.namespace).expectSum(t, d.name, d.file(), d.sum)
	}
	fmt.Printf("measured: recovery  - %d volumes read, %d MiB compared\n", len(r.data), len(r.data)*written)
}

// cinderCommand runs `kubectl cinder`, which may end with one of these exit codes, and gives its output.
func (r *recovery) cinderCommand(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	out, messages, err := r.try(t.Context(), "", "kubectl", append([]string{"cinder"}, args...)...)
	t.Logf("kubectl cinder %s\n%s%s", strings.Join(args, " "), out, messages)
	return out, err
}

// etcd does something to the etcd of the cluster.
func (r *recovery) etcd(ctx context.Context, args ...string) error {
	_, _, err := r.try(ctx, "", filepath.Join(r.repo, "test", "bed", "cluster", "etcd.sh"), args...)
	return err
}

// shell runs the commands that `kubectl cinder` has printed, as the user of the project.
func (r *recovery) shell(t *testing.T, commands string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "commands.sh")
	testfile.Write(t, file, commands, 0o600)
	t.Logf("sh -e:\n%s", commands)
	if _, _, err := r.try(t.Context(), "", "env", "OS_CLOUD=lab-demo", "sh", "-e", file); err != nil {
		t.Fatal(err)
	}
}

// delete deletes what the users have, with the volumes: somebody decided that their policy is Delete again.
func (r *recovery) delete(t *testing.T) {
	t.Helper()
	for _, name := range strings.Fields(r.kubectl(t, "get", "persistentvolumes", "-o", "name")) {
		r.kubectl(t, "patch", name, "--type=merge", "-p", `{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}`)
	}
	for _, name := range strings.Fields(r.kubectl(t, "get", "volumesnapshotcontents", "-o", "name")) {
		r.kubectl(t, "patch", name, "--type=merge", "-p", `{"spec": {"deletionPolicy": "Delete"}}`)
	}
	for _, namespace := range teams {
		r.kubectl(t, "delete", "statefulsets,pods,volumesnapshots,pvc", "--all", "--namespace="+namespace, atMost)
	}
	r.kubectl(t, append([]string{"delete", "namespace", atMost}, teams...)...)
	for _, namespace := range teams {
		eventually(t, patience, "every volume and snapshot of "+namespace+" deleted", func() error { return r.in(namespace).nothingLeft(t.Context()) })
	}
}

// remove removes the bundle.
func (r *recovery) remove(t *testing.T) {
	t.Helper()
	r.kubectl(t, "delete", "storageclass/recovery-xfs")
	r.bundle.uninstall(t)
}

// empty fails if somebody uses the cluster.
func (r *recovery) empty(t *testing.T) {
	t.Helper()
	names := append([]string{"get", "namespace", "--ignore-not-found", "-o", "name", namespaces["controller"], namespaces["node"]}, teams...)
	if left := r.kubectl(t, names...) + r.kubectl(t, "get", "persistentvolumes", "-o", "name"); left != "" {
		t.Fatalf("the cluster is in use: it has %q", left)
	}
}

// putRight gives the bed back after a failure: a new cluster, and no volume, snapshot or backup of the rehearsal.
func (r *recovery) putRight(t *testing.T) {
	if !t.Failed() {
		return
	}
	ctx := context.Background()
	if err := r.etcd(ctx, "lose"); err != nil {
		t.Errorf("the cluster does not start again; `make cluster-down cluster-up` does that: %v", err)
	}
	r.deleteInCinder(ctx, t)
}

// deleteInCinder deletes every volume with the mark of a cluster of a rehearsal, with its snapshots and backups. No server may use them. Others may work on
// the same cloud: their volumes stay.
func (r *recovery) deleteInCinder(ctx context.Context, t *testing.T) {
	t.Helper()
	const script = `set -eu; export OS_CLOUD=lab-demo-admin
ids=$(openstack volume list --all-projects --long -f json | jq -r '.[] | select(.Properties["cinder.csi.openstack.org/cluster"] | . == "first" or . == "second") | .ID')
set +e
for id in $ids; do
  for server in $(openstack volume show $id -f json | jq -r '.attachments[].server_id'); do
    openstack volume set --state in-use $id; openstack server remove volume $server $id; done; done 2>/dev/null
for i in 1 2 3 4 5; do for id in $ids; do
  for of in backup snapshot; do
    for one in $(openstack volume $of list --all-projects --volume $id -f value -c ID); do openstack volume $of delete $one; done; done
  openstack volume delete $id; done; [ -z "$ids" ] || sleep 3; done 2>/dev/null
true`
	if _, _, err := r.try(ctx, "", "bash", "-c", script); err != nil {
		t.Error(err)
	}
}
