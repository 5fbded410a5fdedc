package openstacksim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestAnAttachGoesThroughItsStates(t *testing.T) {
	node := serverID("node-az1")
	bubble(t, map[openstacksim.Operation]time.Duration{
		openstacksim.Reserve: time.Second, openstacksim.Attach: 10 * time.Second, openstacksim.Detach: 8 * time.Second,
	}, func(t *testing.T, _ *openstacksim.Sim, c *caller) {
		volume := c.create(`"size":1`)
		begin := time.Now()
		a := c.want(http.StatusOK, c.attach(node, volume))
		if took := time.Since(begin); took != time.Second || a.at("volumeAttachment", "device") != "/dev/vdb" {
			t.Errorf("answered after %v with %v", took, a.body)
		}
		var path []string
		look := func() {
			a := c.do("GET", "/volume/volumes/"+volume, "3.70", "")
			path = append(path, fmt.Sprintf("%v, Cinder lists %d, Nova %d", a.at("volume", "status"), len(a.at("volume", "attachments").([]any)), len(c.novaHas(node))))
		}
		look()
		time.Sleep(5 * time.Second)
		look()
		time.Sleep(5 * time.Second)
		look()
		c.want(http.StatusAccepted, c.detach(node, volume))
		look()
		c.want(http.StatusBadRequest, c.detach(node, volume))
		time.Sleep(6 * time.Second)
		look()
		time.Sleep(2 * time.Second)
		look()
		want := []string{
			"reserved, Cinder lists 0, Nova 1", "attaching, Cinder lists 0, Nova 1", "in-use, Cinder lists 1, Nova 1",
			"detaching, Cinder lists 1, Nova 1", "available, Cinder lists 0, Nova 1", "available, Cinder lists 0, Nova 0",
		}
		if diff := cmp.Diff(want, path); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		c.want(http.StatusNotFound, c.detach(node, volume))
	})
}

func TestACallerThatGoesAwayDoesNotStopTheAttach(t *testing.T) {
	node := serverID("node-az1")
	bubble(t, map[openstacksim.Operation]time.Duration{openstacksim.Reserve: time.Minute}, func(t *testing.T, _ *openstacksim.Sim, c *caller) {
		volume := c.create(`"size":1`)
		c.client.Timeout = time.Second
		if _, err := c.try("POST", "/compute/servers/"+node+"/os-volume_attachments", "2.90", `{"volumeAttachment":{"volumeId":"`+volume+`"}}`); err == nil {
			t.Fatal("want the client's time-out")
		}
		time.Sleep(time.Minute)
		if got := c.state(volume); got != "in-use" {
			t.Errorf("want in-use, got %s", got)
		}
	})
}

func TestOnlyMultiattachVolumesGoToTwoServers(t *testing.T) {
	one, two := serverID("node-az1"), serverID("node-az2")
	c := login(t, instant(), "demo", "demo")
	plain, multi := c.create(`"size":1`), c.create(`"size":1,"volume_type":"multiattach"`)
	c.want(http.StatusOK, c.attach(one, plain))
	for _, node := range []string{one, two} {
		a := c.want(http.StatusBadRequest, c.attach(node, plain))
		if want := "Invalid volume: volume " + plain + " is already attached to instances: " + one; a.message() != want {
			t.Errorf("want %q, got %q", want, a.message())
		}
	}
	old := c.do("POST", "/compute/servers/"+one+"/os-volume_attachments", "2.59", `{"volumeAttachment":{"volumeId":"`+multi+`"}}`)
	if old.status != http.StatusBadRequest || !strings.Contains(old.message(), "2.60") || len(c.novaHas(one)) != 1 {
		t.Errorf("below 2.60: got %d %v, Nova has %v", old.status, old.body, c.novaHas(one))
	}
	c.want(http.StatusOK, c.attach(one, multi))
	c.want(http.StatusOK, c.attach(two, multi))
	c.want(http.StatusAccepted, c.detach(one, multi))
	if got := c.state(multi); got != "in-use" {
		t.Errorf("after the first of two detaches: want in-use, got %s", got)
	}
	c.want(http.StatusAccepted, c.detach(two, multi))
	if got := c.state(multi); got != "available" {
		t.Errorf("after both: want available, got %s", got)
	}
}

func TestAttachesThatNovaRefuses(t *testing.T) {
	node := serverID("node-az1")
	for _, test := range []struct {
		name    string
		prepare func(*openstacksim.Sim, *openstacksim.Config)
		fields  string
		status  int
		want    string
	}{
		{"across zones", func(_ *openstacksim.Sim, c *openstacksim.Config) { c.SameZoneAttach = true }, `"size":1,"availability_zone":"az2"`, 400, "are not in the same availability_zone. Instance is in az1. Volume is in az2"},
		{"too many disks", func(_ *openstacksim.Sim, c *openstacksim.Config) { c.MaxDisks = 1 }, `"size":1`, 403, "The maximum allowed number of disk devices (1)"},
		{"a server in error", func(s *openstacksim.Sim, _ *openstacksim.Config) { s.SetServerStatus(node, "ERROR", "") }, `"size":1`, 409, "while it is in vm_state error"},
		{"a server that is busy", func(s *openstacksim.Sim, _ *openstacksim.Config) { s.SetServerStatus(node, "ACTIVE", "rebooting") }, `"size":1`, 409, "while it is in task_state rebooting"},
		{"a server that is gone", func(s *openstacksim.Sim, _ *openstacksim.Config) { s.RemoveServer(node, false) }, `"size":1`, 404, "Instance " + node + " could not be found."},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := openstacksim.Default()
			config.Latency = nil
			test.prepare(openstacksim.New(config), &config)
			sim := openstacksim.New(config)
			test.prepare(sim, &config)
			c := login(t, sim, "demo", "demo")
			volume := c.create(test.fields)
			a := c.attach(node, volume)
			if a.status != test.status || !strings.Contains(a.message(), test.want) {
				t.Errorf("want %d %q, got %d %q", test.status, test.want, a.status, a.message())
			}
			if got := c.state(volume); got != "available" {
				t.Errorf("the volume is %s", got)
			}
		})
	}
}

func TestAStaleAttachmentStaysInCinder(t *testing.T) {
	node := serverID("node-az1")
	sim := instant()
	c := login(t, sim, "demo", "demo")
	volume := c.create(`"size":1`)
	c.want(http.StatusOK, c.attach(node, volume))
	list := c.do("GET", "/volume/attachments?volume_id="+volume, "3.70", "")
	attachment := list.at("attachments", 0, "id").(string)
	if a := c.want(http.StatusConflict, c.do("DELETE", "/volume/attachments/"+attachment, "3.70", "")); !strings.HasPrefix(a.message(), "ConflictNovaUsingAttachment") {
		t.Errorf("got %q", a.message())
	}
	sim.RemoveServer(node, true)
	c.want(http.StatusNotFound, c.do("GET", "/compute/servers/"+node, "", ""))
	if got := c.state(volume); got != "in-use" {
		t.Errorf("want in-use, got %s", got)
	}
	c.want(http.StatusOK, c.do("DELETE", "/volume/attachments/"+attachment, "3.70", ""))
	if got := c.state(volume); got != "available" {
		t.Errorf("want available, got %s", got)
	}
}

func TestDeletingAServerFreesItsVolumes(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	node, volume := serverID("node-az1"), c.create(`"size":1`)
	c.want(http.StatusOK, c.attach(node, volume))
	c.want(http.StatusNoContent, c.do("DELETE", "/compute/servers/"+node, "", ""))
	if got := c.state(volume); got != "available" {
		t.Errorf("want available, got %s", got)
	}
}

func TestALimitCountsTheRootDiskThatIsNotListed(t *testing.T) {
	c := login(t, instant(), "demo", "demo")
	node := serverID("node-az1")
	c.want(http.StatusOK, c.attach(node, c.create(`"size":1`)))
	for limit, want := range map[string]int{"limit=1": 0, "limit=2": 1, "limit=1&offset=1": 1} {
		a := c.do("GET", "/compute/servers/"+node+"/os-volume_attachments?"+limit, "2.93", "")
		if got := len(a.at("volumeAttachments").([]any)); got != want {
			t.Errorf("%s: want %d, got %d", limit, want, got)
		}
	}
}

func TestTheMetadataServiceKnowsServersByName(t *testing.T) {
	sim := instant()
	a := anonymous(t, sim).do("GET", "/metadata/node-az2/openstack/latest/meta_data.json", "", "")
	if a.status != http.StatusOK || a.at("uuid") != serverID("node-az2") || a.at("availability_zone") != "az2" || a.at("name") != "node-az2" {
		t.Errorf("got %d %v", a.status, a.body)
	}
	if a := anonymous(t, sim).do("GET", "/metadata/nobody/openstack/latest/meta_data.json", "", ""); a.status != http.StatusNotFound {
		t.Errorf("want 404, got %d", a.status)
	}
	if a := anonymous(t, sim).do("GET", "/metadata/"+serverID("node-az1")+"/openstack/latest/meta_data.json", "", ""); a.at("uuid") != serverID("node-az1") {
		t.Errorf("want the document by ID too, got %d %v", a.status, a.body)
	}
}
