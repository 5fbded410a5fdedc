//go:build cluster

package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// transfer gives the volumes of the cluster to another project, as the page says, and back. In the other project `recover` writes the same objects.
// The nodes of the bed are servers of the first project, so the bytes are read there, after the second transfer.
func transfer(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.install(t, "first", false)
	r.fill(t)
	for _, namespace := range teams {
		r.kubectl(t, "delete", "pods", "--all", "--namespace="+namespace, atMost)
	}
	r.step(t, "bundle installed, %d volumes written", len(r.data))
	var ids []string
	for _, d := range r.data {
		ids = append(ids, r.in(d.namespace).volumeOf(t, d.name))
	}
	for _, id := range ids {
		c.awaitAvailable(t, id)
	}
	page := (&pages{cluster: c}).read(t, "how-to/recover-a-cluster.md")
	_, section, found := strings.Cut(page, "\n### In another project\n")
	commands := readme.Fenced(section, "sh")
	if !found || len(commands) == 0 {
		t.Fatal("the page has no section about another project")
	}
	for _, id := range ids {
		r.give(t, commands[0], "lab-demo", "lab-other", id)
	}
	r.step(t, "%d volumes given to the other project", len(ids))
	documents := testenv.Value(r.cinderCommand(t, "recover", "--cluster-id", "first", "--os-cloud", "lab-other"))(t)
	for _, id := range ids {
		if !strings.Contains(documents, "volumeHandle: "+id+"\n") {
			t.Errorf("recover does not find volume %s in the other project", id)
		}
	}
	r.step(t, "recover finds %d volumes there", strings.Count(documents, "volumeHandle: "))
	if out, err := r.cinderCommand(t, "list", "--wrong", "--os-cloud", "lab-demo"); err == nil || strings.Count(out, "not in this project") != len(ids) {
		t.Errorf("list in the first project: %v: %s", err, out)
	}
	for _, id := range ids {
		r.give(t, commands[0], "lab-other", "lab-demo", id)
	}
	r.step(t, "%d volumes given back", len(ids))
	r.read(t)
	r.step(t, "pods started, every byte read")
	r.delete(t)
	r.remove(t)
	r.step(t, "everything deleted")
}

// give runs the two commands of the page for one volume.
func (r *recovery) give(t *testing.T, commands, from, to, id string) {
	t.Helper()
	request, accept, found := strings.Cut(strings.TrimSpace(commands), "\n")
	if !found {
		t.Fatalf("want two commands, got %q", commands)
	}
	clouds := strings.NewReplacer("--os-cloud old", "--os-cloud "+from, "--os-cloud new", "--os-cloud "+to)
	out := r.run(t, "bash", "-c", clouds.Replace(strings.NewReplacer("VOLUME", id, "shop-data", "t-"+id).Replace(request))+" -f json")
	var made struct {
		ID  string `json:"id"`
		Key string `json:"auth_key"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Key == "" {
		t.Fatalf("the transfer of volume %s: %v: %s", id, err, out)
	}
	r.run(t, "bash", "-c", clouds.Replace(strings.NewReplacer("KEY", made.Key, "TRANSFER", made.ID).Replace(accept)))
}
