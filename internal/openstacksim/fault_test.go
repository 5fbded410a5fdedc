package openstacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestFaultOccursTimesTimes(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	sim.SetFault(openstacksim.Fault{Method: "GET", Path: "/volume/v3/*/volumes", Status: http.StatusServiceUnavailable, Times: 2, Header: http.Header{"Retry-After": {"7"}}})
	for i, want := range []int{503, 503, 200} {
		a := c.do("GET", "/volume/volumes", "3.70", "")
		if a.status != want {
			t.Errorf("call %d: want %d, got %d", i, want, a.status)
		}
		if want == 503 && (a.header.Get("Retry-After") != "7" || a.header.Get("Openstack-Api-Version") != "volume 3.70" || a.at("serviceUnavailable", "code") == nil) {
			t.Errorf("call %d: got %v %v", i, a.header, a.body)
		}
	}
	c.want(http.StatusOK, c.do("GET", "/volume/volumes/detail", "", ""))
}

func TestFaultSkipsSkipRequests(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	sim.SetFault(openstacksim.Fault{Method: "GET", Status: http.StatusTeapot, Skip: 2, Times: 1})
	sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Skip: 1})
	for i, want := range []int{200, 200, 418, 200} {
		if a := c.do("GET", "/volume/volumes", "", ""); a.status != want {
			t.Errorf("call %d: want %d, got %d", i, want, a.status)
		}
	}
	for _, want := range []string{"available", "error"} {
		if got := c.state(c.create(`"size":1`)); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestAFaultCanBeTakenAway(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	remove := sim.SetFault(openstacksim.Fault{Path: "/compute/**", Status: http.StatusTooManyRequests})
	c.want(http.StatusTooManyRequests, c.do("GET", "/compute/servers", "", ""))
	c.want(http.StatusOK, c.do("GET", "/volume/volumes", "", ""))
	remove()
	c.want(http.StatusOK, c.do("GET", "/compute/servers", "", ""))
	sim.SetFault(openstacksim.Fault{Status: http.StatusTeapot})
	sim.ClearFaults()
	c.want(http.StatusOK, c.do("GET", "/compute/servers", "", ""))
}

func TestAnAnswerLostAfterTheWriteLeavesWhatWasWritten(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	for name, f := range map[string]openstacksim.Fault{
		"gateway": {Method: "POST", Contains: `"lost"`, After: true, Status: http.StatusGatewayTimeout, Times: 1},
		"dropped": {Method: "POST", Contains: `"lost"`, After: true, Drop: true, Times: 1},
		"never":   {Method: "POST", Contains: `"lost"`, Drop: true, Times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(c.do("GET", "/volume/volumes?name=lost", "", "").at("volumes").([]any))
			sim.SetFault(f)
			a, err := c.try("POST", "/volume/volumes", "", `{"volume":{"size":1,"name":"lost"}}`)
			if (err != nil) != f.Drop || !f.Drop && a.status != f.Status {
				t.Errorf("got %d, %v", a.status, err)
			}
			made := len(c.do("GET", "/volume/volumes?name=lost", "", "").at("volumes").([]any)) - before
			if want := map[bool]int{true: 1, false: 0}[f.After]; made != want {
				t.Errorf("want %d made, got %d", want, made)
			}
		})
	}
}

func TestACallMayBeDoneLongAfterItsAnswer(t *testing.T) {
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		sim.SetFault(openstacksim.Fault{Method: "POST", Path: "/volume/**", Status: http.StatusGatewayTimeout, Late: time.Minute, Times: 1})
		c.want(http.StatusGatewayTimeout, c.do("POST", "/volume/volumes", "", `{"volume":{"size":1}}`))
		for want := range 2 {
			if got := len(c.do("GET", "/volume/volumes", "", "").at("volumes").([]any)); got != want {
				t.Errorf("want %d volumes, got %d", want, got)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestACreateFailsWithAMessageForItsOwner(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Message: "create volume from backend storage:No space.", Times: 1})
	id := c.create(`"size":1`)
	if got := c.state(id); got != "error" {
		t.Errorf("want error, got %s", got)
	}
	a := c.want(http.StatusOK, c.do("GET", "/volume/messages?resource_uuid="+id, "3.5", ""))
	var all []string
	for i := range a.at("messages").([]any) {
		all = append(all, a.at("messages", i, "user_message").(string))
	}
	if !strings.Contains(strings.Join(all, "\n"), "No space.") {
		t.Errorf("got %q", all)
	}
	if got := c.state(c.create(`"size":1`)); got != "available" {
		t.Errorf("the next one: want available, got %s", got)
	}
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/volumes/"+id, "", ""))
}

func TestAttachThatFailsOnTheHostHasNoError(t *testing.T) {
	node := serverID("node-az1")
	bubble(t, map[openstacksim.Operation]time.Duration{openstacksim.Attach: 2 * time.Second}, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		volume := c.create(`"size":1`)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Times: 1})
		c.want(http.StatusOK, c.attach(node, volume))
		if got := c.state(volume); got != "reserved" {
			t.Errorf("want reserved, got %s", got)
		}
		time.Sleep(2 * time.Second)
		if got := c.state(volume); got != "available" || len(c.novaHas(node)) != 0 {
			t.Errorf("want available and forgotten, got %s, Nova has %v", got, c.novaHas(node))
		}
		c.want(http.StatusOK, c.attach(node, volume))
		time.Sleep(2 * time.Second)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.Detach, Times: 1})
		c.want(http.StatusAccepted, c.detach(node, volume))
		if got := c.state(volume); got != "in-use" || len(c.novaHas(node)) != 1 {
			t.Errorf("a failed detach: want in-use and still there, got %s, Nova has %v", got, c.novaHas(node))
		}
	})
}

func TestASlowOperationSucceedsLater(t *testing.T) {
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Slow: true, Delay: time.Hour, Times: 1})
		id := c.create(`"size":1`)
		time.Sleep(time.Hour - 1)
		if got := c.state(id); got != "creating" {
			t.Errorf("want creating, got %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := c.state(id); got != "available" {
			t.Errorf("want available, got %s", got)
		}
	})
}

func TestAHeldRequestEndsWithItsCaller(t *testing.T) {
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		sim.SetFault(openstacksim.Fault{Path: "/volume/**", Delay: time.Hour, Times: 1})
		c.client.Timeout = time.Minute
		begin := time.Now()
		if _, err := c.try("GET", "/volume/volumes", "", ""); err == nil || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
}
