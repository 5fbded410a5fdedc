package openstacksim_test

import (
	"net/http"
	"testing"
)

// The statuses are those that cinder/volume/api.py names, with its words.
func TestTheStatusOfAVolumeDecidesWhatMayChange(t *testing.T) {
	for name, test := range map[string]struct{ status, path, body, want string }{
		"metadata in maintenance":  {"maintenance", "/metadata", `{"metadata":{"a":"b"}}`, "Invalid volume: Updating volume metadata is not allowed for volumes in maintenance status."},
		"metadata while uploading": {"uploading", "/metadata", `{"metadata":{"a":"b"}}`, "Invalid volume: Updating volume metadata is not allowed for volumes in uploading status."},
		"snapshot in maintenance":  {"maintenance", "", "", "Invalid volume: The snapshot cannot be created when the volume is in maintenance mode."},
		"snapshot in error":        {"error", "", "", "Invalid volume: The snapshot cannot be created when the volume is in error status."},
	} {
		t.Run(name, func(t *testing.T) {
			sim := instant()
			c, admin := login(t, sim, "demo", "demo"), login(t, sim, "demo-admin", "demo")
			id := c.create(`"size":1`)
			admin.want(http.StatusAccepted, admin.do("POST", "/volume/volumes/"+id+"/action", "", `{"os-reset_status":{"status":"`+test.status+`"}}`))
			path, body := "/volume/volumes/"+id+test.path, test.body
			if body == "" {
				path, body = "/volume/snapshots", `{"snapshot":{"volume_id":"`+id+`"}}`
			}
			if a := c.want(http.StatusBadRequest, c.do("POST", path, "", body)); a.message() != test.want {
				t.Errorf("want %q, got %q", test.want, a.message())
			}
		})
	}
}

func TestAFrozenBackendChangesNothing(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	id := c.create(`"size":1`)
	snapshot := func() answer {
		return c.do("POST", "/volume/snapshots", "", `{"snapshot":{"volume_id":"`+id+`"}}`)
	}
	made := c.want(http.StatusAccepted, snapshot()).at("snapshot", "id").(string)
	sim.SetBackendsFrozen(true)
	for _, a := range []answer{snapshot(), c.do("DELETE", "/volume/snapshots/"+made, "", ""), c.do("DELETE", "/volume/volumes/"+id, "", "")} {
		if want := "Invalid input received: Modification operations are not allowed on frozen storage backends."; a.status != http.StatusBadRequest || a.message() != want {
			t.Errorf("want 400 %q, got %d %q", want, a.status, a.message())
		}
	}
	sim.SetBackendsFrozen(false)
	c.want(http.StatusAccepted, c.do("DELETE", "/volume/snapshots/"+made, "", ""))
}
