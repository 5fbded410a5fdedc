//go:build hypershift

package hypershift

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// The administrator of the guest has every right there, and knows the IDs of the project. He tries to reach objects of another cluster by way
// of the sidecars and the driver, which have the rights of the operator. Each attempt is made for what is the cluster's own, too, so that a row
// that reaches nothing fails. Cinder and Nova say at the end that nothing of others has changed.
func TestAHostileAdministratorOfTheGuestReachesNothingOfAnotherCluster(t *testing.T) {
	h := startHosted(t)
	foreign := h.openstack.foreign(t) // strict is the default, and so is the tag of the servers
	h.node(t, server{ID: foreign.ID, Name: foreignServer, Zone: h.servers[0].Zone})
	all := h.belongings(t, foreign)
	p := h.install(t, modeToken, 0)
	h.prepare(t)
	before := h.openstack.state(t, all, foreign)
	begin, refused, served := time.Now(), 0, 0
	for _, b := range all {
		for _, a := range attempts {
			id := a.object(b)
			if id == "" || b.cause == "" && a.onlyOthers {
				continue
			}
			t.Run(b.name+"/"+a.name, func(t *testing.T) {
				name := strings.ToLower(strings.ReplaceAll(a.name+"-"+b.name, " ", "-"))
				if got := h.attempt(t, a, b, name, id, foreign); got != b.cause {
					t.Errorf("want %q, got %q", b.cause, got)
				} else if got == "" {
					served++
				} else {
					refused++
				}
				h.forget(t, name, b.cause == "")
			})
		}
	}
	for _, a := range ownAttempts {
		t.Run("own/"+a.name, func(t *testing.T) {
			name := strings.ReplaceAll(a.name, " ", "-")
			a.try(t, h, all[1], name, foreign.ID)
			eventually(t, 90*time.Second, a.name, func() error {
				answer := h.answer(name)
				if a.served != nil && a.served(h, name) || a.want != nil && a.want.MatchString(answer) {
					return nil
				}
				return fmt.Errorf("the guest reads: %s", answer)
			})
			if a.want != nil {
				refused++
			} else {
				served++
			}
			h.forget(t, name, a.want == nil)
		})
	}
	h.openstack.wantUntouched(t, before, all, foreign)
	p.stop(t)
	h.openstack.sweep(t)
	t.Logf("measured: %d attempts refused and %d served in %.0f s", refused, served, time.Since(begin).Seconds())
}

// attempt is one way in which somebody with every right in the guest has the driver act on an object of the project.
type attempt struct {
	name       string
	object     func(b belonging) string // what it names; nothing if the belonging has no such object
	onlyOthers bool
	try        func(t *testing.T, h *hosted, b belonging, name, id string)
	served     func(h *hosted, name string) bool
	answer     func(h *hosted, name string) string // what the guest reads, if the objects of the attempt have others too
	forge      func(h *hosted, name, id string)    // writes what only a controller of the guest would write, again and again
	want       *regexp.Regexp                      // what the guest reads; for ownAttempts
}

func volumeOf(b belonging) string   { return b.volume }
func attachedOf(b belonging) string { return b.attached }
func snapshotOf(b belonging) string { return b.snapshot }
func backupOf(b belonging) string   { return b.backup }

// namedOf is for attempts that find an object by its name. Nobody but its server says whose a volume on an excluded server is.
func namedOf(b belonging) string {
	if b.volume == b.attached {
		return ""
	}
	return b.volume
}

// attempts are in an order that leaves each object there for the next.
var attempts = slices.Concat([]attempt{
	{name: "attach", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.attachment(t, name, h.servers[0].Name)
	}, served: attachment("true")},
	{name: "attach without a PersistentVolume", object: volumeOf, onlyOthers: true, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.guest.apply(t, fmt.Sprintf(inline, name, driverName, h.servers[0].Name, id))
	}, served: attachment("true")},
	{name: "detach", object: attachedOf, try: func(t *testing.T, h *hosted, b belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.attachment(t, name, b.at)
		eventually(t, 90*time.Second, "an answer to the attach", func() error {
			if attachment("true")(h, name) || h.field("volumeattachment", name, "{.status.attachError.message}") != "" {
				return nil
			}
			return fmt.Errorf("none")
		})
		h.guest.kubectl(t, "delete", "volumeattachment", name, "--wait=false")
	}, served: gone("volumeattachment"), answer: func(h *hosted, name string) string { // the attach was refused before
		return h.field("volumeattachment", name, "{.status.detachError.message}")
	}},
	{name: "clone", object: volumeOf, try: func(t *testing.T, h *hosted, b belonging, name, id string) {
		h.static(t, name+"-source", id, "Retain")
		h.dynamic(t, name, "hostile", "dataSource: {kind: PersistentVolumeClaim, name: "+name+"-source}")
	}, served: bound},
	{name: "modify", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.guest.kubectl(t, "wait", "pvc/"+name, "--namespace="+space, "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
		h.guest.kubectl(t, "patch", "pvc", name, "--namespace="+space, "-p", `{"spec":{"volumeAttributesClassName":"hostile"}}`)
	}, served: equals("pvc", "{.status.currentVolumeAttributesClassName}", "hostile")},
	{name: "snapshot", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.snapshot(t, name, "hostile", "persistentVolumeClaimName: "+name)
	}, served: ready},
	{name: "back up", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.snapshot(t, name, "hostile-backup", "persistentVolumeClaimName: "+name)
	}, served: ready},
	{name: "expand", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.static(t, name, id, "Retain")
		h.guest.kubectl(t, "wait", "pvc/"+name, "--namespace="+space, "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
		h.guest.kubectl(t, "patch", "pvc", name, "--namespace="+space, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	}, served: equals("pv", "{.spec.capacity.storage}", "2Gi")},
	{name: "create beside", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.class(t, name, "Immediate", "scheduler-hints: '{\"same_host\": \""+id+"\"}'")
		h.dynamic(t, name, name, "")
	}, served: bound},
	{name: "create by name", object: namedOf, onlyOthers: true, try: func(t *testing.T, h *hosted, b belonging, name, _ string) {
		h.dynamic(t, name, "hostile-late", "")
		uid := h.guest.kubectl(t, "get", "pvc", name, "--namespace="+space, "-o", "jsonpath={.metadata.uid}")
		// As after a copy of etcd: another cluster has a claim of this UID. Nobody can choose one.
		h.openstack.volumeWith(t, "pvc-"+uid, b.metadata)
		h.guest.kubectl(t, "annotate", "pvc", name, "--namespace="+space, "volume.kubernetes.io/selected-node="+h.servers[0].Name)
	}, served: bound},
	{name: "snapshot by name", object: namedOf, onlyOthers: true, try: func(t *testing.T, h *hosted, b belonging, name, id string) {
		of := h.openstack.volumeWith(t, secretName, b.metadata)
		h.openstack.create(t, "snapshots", map[string]any{"snapshot": map[string]any{"name": "snapshot-" + id, "volume_id": of, "metadata": b.metadata}})
		h.guest.apply(t, fmt.Sprintf(content, name, "Retain", "volumeHandle: "+h.openstack.volumeWith(t, "static", clusterMark), ", uid: "+id))
	}, served: ready},
}, snapshots("snapshot", snapshotOf), snapshots("backup", backupOf), []attempt{
	{name: "delete", object: volumeOf, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.guest.apply(t, fmt.Sprintf(released, name, id, driverName))
	}, served: gone("pv")},
})

const fromSnapshot = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: "

// snapshots are the attempts that name a snapshot or a backup.
func snapshots(kind string, object func(b belonging) string) []attempt {
	return []attempt{
		{name: "read a " + kind, object: object, try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
			h.guest.apply(t, fmt.Sprintf(content, name, "Retain", "snapshotHandle: "+id, ""))
			h.snapshot(t, name, "", "volumeSnapshotContentName: "+name)
		}, served: ready},
		{name: "restore a " + kind, object: object, try: func(t *testing.T, h *hosted, b belonging, name, id string) {
			h.guest.apply(t, fmt.Sprintf(content, name, "Retain", "snapshotHandle: "+id, ""))
			h.snapshot(t, name, "", "volumeSnapshotContentName: "+name)
			h.guest.kubectl(t, "wait", "volumesnapshot/"+name, "--namespace="+space, "--for=jsonpath={.status.boundVolumeSnapshotContentName}="+name, "--timeout=60s")
			if b.cause == "" {
				h.guest.apply(t, fmt.Sprintf(claimed, name, "hostile", fromSnapshot+name+"}"))
			}
		}, served: bound, answer: func(h *hosted, name string) string {
			return h.events(name, "involvedObject.kind=PersistentVolumeClaim")
		}, forge: func(h *hosted, name, id string) { // nobody but the administrator says that it can be used
			h.forge("volumesnapshotcontent", name, `"restoreSize":1073741824,"snapshotHandle":"`+id+`"`)
			h.forge("volumesnapshot", name, `"restoreSize":"1Gi"`)
			_, _ = h.guest.try("", "delete", "pvc", name, "--namespace="+space, "--ignore-not-found", "--timeout=20s") // a new claim is tried at once
			_, _ = h.guest.try(fmt.Sprintf(claimed, name, "hostile", fromSnapshot+name+"}"), "apply", "-f", "-")
		}},
		{name: "delete a " + kind, object: object, try: func(t *testing.T, h *hosted, b belonging, name, id string) {
			h.guest.apply(t, fmt.Sprintf(content, name, "Delete", "snapshotHandle: "+id, ""))
			if b.cause != "" { // without a handle in its status the sidecar would let it go, and the driver would not be asked
				h.guest.kubectl(t, "patch", "volumesnapshotcontent", name, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"hypershift.test/hold"}]`)
			}
			h.guest.kubectl(t, "annotate", "volumesnapshotcontent", name, "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted=yes")
			h.guest.kubectl(t, "delete", "volumesnapshotcontent", name, "--wait=false")
		}, served: gone("volumesnapshotcontent"), answer: func(h *hosted, name string) string { // the guest learns that it failed, and no more
			return h.logged("snapshotter", `failed to delete snapshot "`+name+`"`)
		}, forge: func(h *hosted, name, id string) { h.forge("volumesnapshotcontent", name, `"snapshotHandle":"`+id+`"`) }},
	}
}

// ownAttempts begin with a volume of the cluster, and reach for something else.
var ownAttempts = []attempt{
	{name: "attach to a foreign server", want: regexp.MustCompile(`\[server\.foreign\]`), try: func(t *testing.T, h *hosted, _ belonging, name, _ string) {
		h.static(t, name, h.openstack.volumeWith(t, "static", clusterMark), "Retain")
		h.attachment(t, name, foreignServer)
	}},
	{name: "give a volume to another cluster by class", want: regexp.MustCompile("driver itself"), try: func(t *testing.T, h *hosted, _ belonging, name, _ string) {
		h.class(t, name, "Immediate", `appendVolumeMetadata: '{"cinder.csi.openstack.org/cluster": "`+otherCluster+`"}'`)
		h.dynamic(t, name, name, "")
	}},
	{name: "give a volume to another cluster by attributes", want: regexp.MustCompile("driver itself"), try: func(t *testing.T, h *hosted, _ belonging, name, _ string) {
		h.static(t, name, h.openstack.volumeWith(t, "static", clusterMark), "Retain")
		h.guest.kubectl(t, "wait", "pvc/"+name, "--namespace="+space, "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
		h.guest.kubectl(t, "patch", "pvc", name, "--namespace="+space, "-p", `{"spec":{"volumeAttributesClassName":"hostile-mark"}}`)
	}},
	// Only the CSINode says which server a node is.
	{name: "attach to a node that names another server", served: attachment("true"), try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.node(t, server{ID: h.servers[0].ID, Name: name, Zone: h.servers[0].Zone})
		h.guest.kubectl(t, "patch", "node", name, "-p", `{"spec":{"providerID":"openstack:///`+id+`"},"metadata":{"labels":{"`+topologyKey+`":"az2"}}}`)
		h.static(t, name, h.openstack.volumeWith(t, "static", clusterMark), "Retain")
		h.attachment(t, name, name)
	}},
	{name: "attach to a path", want: regexp.MustCompile(`\[server\.missing\]`), try: func(t *testing.T, h *hosted, _ belonging, name, id string) {
		h.node(t, server{ID: "../servers/" + id, Name: name, Zone: h.servers[0].Zone})
		h.static(t, name, h.openstack.volumeWith(t, "static", clusterMark), "Retain")
		h.attachment(t, name, name)
	}},
	handle("a path", "../servers/SERVER"), handle("an action", "VOLUME/action"), handle("a query", "VOLUME?all_tenants=1"), handle("capitals", "CAPITALS"), handle("a name", secretName),
}

// handle is an attempt to have something else put into the URL of a volume.
func handle(name, form string) attempt {
	return attempt{name: "a handle with " + name, want: regexp.MustCompile(`\[volume\.(missing|other-cluster)\]`), try: func(t *testing.T, h *hosted, b belonging, name, server string) {
		volume := strings.NewReplacer("VOLUME", b.volume, "CAPITALS", strings.ToUpper(b.volume), "SERVER", server).Replace(form)
		h.static(t, name, volume, "Retain")
		h.attachment(t, name, h.servers[0].Name)
	}}
}

var causes = regexp.MustCompile(`\[((?:volume|server)\.[a-z-]+)\]`)

// attempt makes an attempt, and waits until it is served or refused with a cause. What the guest reads reveals no more than it knows.
func (h *hosted) attempt(t *testing.T, a attempt, b belonging, name, id string, foreign server) (refused cause.ID) {
	t.Helper()
	a.try(t, h, b, name, id)
	var forged time.Time
	eventually(t, 5*time.Minute, name, func() error { // a backup takes minutes on a busy machine
		if a.served(h, name) {
			refused = ""
			return nil
		}
		if a.forge != nil && b.cause != "" && time.Since(forged) > 10*time.Second { // each write has the controllers read it all again
			forged = time.Now()
			a.forge(h, name, id)
		}
		answer := h.answer(name)
		if a.answer != nil {
			answer = a.answer(h, name)
		}
		for _, secret := range []string{secretName, otherCluster, foreign.ID} {
			if strings.Contains(answer, secret) {
				t.Errorf("the guest reads %s: %s", secret, answer)
			}
		}
		// While the call of an earlier attempt still has the volume, the driver says so before it looks whose it is.
		if found := causes.FindStringSubmatch(answer); found != nil && b.cause != "" && found[1] != string(cause.VolumeBusy) {
			refused = cause.ID(found[1])
			return nil
		}
		return fmt.Errorf("the guest reads: %s", answer)
	})
	return refused
}
