package openstacksim_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// plane records its calls, and fails those that broken names.
type plane struct {
	calls  []string
	broken string
}

func (p *plane) call(name string, args ...any) error {
	p.calls = append(p.calls, name+" "+fmt.Sprintln(args...))
	if name == p.broken {
		return errors.New("the disk is full")
	}
	return nil
}

func (p *plane) Make(id, from string, gib int) error { return p.call("make", id, from, gib) }
func (p *plane) MakeShifted(id, from string, gib int) error {
	return p.call("make-shifted", id, from, gib)
}
func (p *plane) Write(v, backup string) error     { return p.call("write", v, backup) }
func (p *plane) Extend(v string, gib int) error   { return p.call("extend", v, gib) }
func (p *plane) Remove(id string) error           { return p.call("remove", id) }
func (p *plane) RemoveServer(id string) error     { return p.call("remove-server", id) }
func (p *plane) Attach(s, v, device string) error { return p.call("attach", s, v, device) }
func (p *plane) Detach(s, v string) error         { return p.call("detach", s, v) }
func (p *plane) AddServer(id, name string, document func() []byte) error {
	if len(document()) == 0 {
		return errors.New("no metadata")
	}
	return p.call("add-server", id, name)
}

// took are the calls since the last took.
func (p *plane) took() []string {
	calls := p.calls
	p.calls = nil
	return calls
}

func withPlane(t *testing.T) (*openstacksim.Sim, *plane) {
	t.Helper()
	sim, p := instant(), &plane{}
	if err := sim.UseDataPlane(p); err != nil {
		t.Fatal(err)
	}
	return sim, p
}

func TestEveryChangeOfTheBooksReachesTheDataPlane(t *testing.T) {
	sim, p := withPlane(t)
	c := login(t, sim, "demo", "demo")
	id := func(a answer, kind string) string {
		t.Helper()
		text, _ := c.want(http.StatusAccepted, a).at(kind, "id").(string)
		return text
	}
	expect := func(step string, want ...string) {
		t.Helper()
		for i := range want {
			want[i] += "\n"
		}
		if diff := cmp.Diff(want, p.took()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	var servers []string
	node := ""
	for _, s := range openstacksim.Default().Servers {
		servers = append(servers, "add-server "+s.ID+" "+s.Name)
		node = s.ID
	}
	slices.Sort(servers)
	expect("the servers that were there", servers...)

	volume := id(c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":1}}`), "volume")
	expect("create", "make "+volume+"  1")
	c.want(http.StatusOK, c.do("POST", "/compute/servers/"+node+"/os-volume_attachments", "2.79", `{"volumeAttachment":{"volumeId":"`+volume+`"}}`))
	expect("attach", "attach "+node+" "+volume+" /dev/vdb")
	c.want(http.StatusAccepted, c.do("POST", "/volume/volumes/"+volume+"/action", "3.70", `{"os-extend":{"new_size":2}}`))
	expect("extend", "extend "+volume+" 2")
	snapshot := id(c.do("POST", "/volume/snapshots", "3.70", `{"snapshot":{"volume_id":"`+volume+`"}}`), "snapshot")
	expect("snapshot", "make "+snapshot+" "+volume+" 2")
	backup := id(c.do("POST", "/volume/backups", "3.70", `{"backup":{"volume_id":"`+volume+`","force":true}}`), "backup")
	expect("backup", "make "+backup+" "+volume+" 2")
	c.want(http.StatusAccepted, c.do("DELETE", "/compute/servers/"+node+"/os-volume_attachments/"+volume, "2.79", ""))
	expect("detach", "detach "+node+" "+volume)
	for source, from := range map[string]string{"snapshot_id": snapshot, "source_volid": volume, "backup_id": backup} {
		made := id(c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":3,"`+source+`":"`+from+`"}}`), "volume")
		expect(source, "make "+made+" "+from+" 3")
	}
	sim.SetCephBackups(true)
	shifted := id(c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":3,"backup_id":"`+backup+`"}}`), "volume")
	expect("a backup in Ceph", "make-shifted "+shifted+" "+backup+" 3")
	into := id(c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":3}}`), "volume")
	c.want(http.StatusAccepted, c.do("POST", "/volume/backups/"+backup+"/restore", "3.70", `{"restore":{"volume_id":"`+into+`"}}`))
	expect("restore", "make "+into+"  3", "write "+into+" "+backup)
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/backups/"+backup, "3.70", ""))
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/snapshots/"+snapshot, "3.70", ""))
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/volumes/"+volume, "3.70", ""))
	expect("delete", "remove "+backup, "remove "+snapshot, "remove "+volume)
	sim.RemoveServer(node, true)
	added := sim.AddServer(openstacksim.Server{Name: "new", Project: "demo"})
	expect("servers that go and come", "remove-server "+node, "add-server "+added+" new")
}

func TestAnErrorOfTheDataPlaneEndsTheOperation(t *testing.T) {
	for _, test := range []struct{ broken, method, path, body, volume string }{
		{"make", "POST", "/volume/volumes", `{"volume":{"size":1}}`, "available"},
		{"extend", "POST", "/volume/volumes/VOLUME/action", `{"os-extend":{"new_size":2}}`, "error_extending"},
		{"remove", "DELETE", "/volume/volumes/VOLUME", "", "error_deleting"},
		{"attach", "POST", "/compute/servers/SERVER/os-volume_attachments", `{"volumeAttachment":{"volumeId":"VOLUME"}}`, "available"},
		{"detach", "DELETE", "/compute/servers/SERVER/os-volume_attachments/VOLUME", "", "in-use"},
	} {
		t.Run(test.broken, func(t *testing.T) {
			sim, p := withPlane(t)
			c := login(t, sim, "demo", "demo")
			volume, _ := c.want(http.StatusAccepted, c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":1}}`)).at("volume", "id").(string)
			server := openstacksim.Default().Servers[0].ID
			named := strings.NewReplacer("VOLUME", volume, "SERVER", server).Replace
			if test.broken == "detach" {
				c.want(http.StatusOK, c.do("POST", named("/compute/servers/SERVER/os-volume_attachments"), "", named(`{"volumeAttachment":{"volumeId":"VOLUME"}}`)))
			}
			p.broken = test.broken
			a := c.do(test.method, named(test.path), "", named(test.body))
			if a.status >= http.StatusMultipleChoices {
				t.Fatalf("the call itself is answered before the operation: %d %v", a.status, a.body)
			}
			if test.broken == "make" {
				made, _ := a.at("volume", "id").(string)
				if got := c.do("GET", "/volume/volumes/"+made, "3.70", "").at("volume", "status"); got != "error" {
					t.Errorf("the volume without bytes: want error, got %v", got)
				}
			}
			if got := c.do("GET", "/volume/volumes/"+volume, "3.70", "").at("volume", "status"); got != test.volume {
				t.Errorf("want %s, got %v", test.volume, got)
			}
		})
	}
}

func TestAnOperationThatFailsAnywayDoesNotReachTheDataPlane(t *testing.T) {
	sim, p := withPlane(t)
	c := login(t, sim, "demo", "demo")
	p.took()
	sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
	c.want(http.StatusAccepted, c.do("POST", "/volume/volumes", "3.70", `{"volume":{"size":1}}`))
	if got := p.took(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if err := sim.UseDataPlane(p); err == nil {
		t.Error("a data plane was given to a cloud that has volumes")
	}
}
