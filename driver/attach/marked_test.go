package attach

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestAMarkedServerIsReadOnceInTenMinutesAndAnotherEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		for _, server := range []volume.ServerID{cloudtest.ServerA, cloudtest.ServerB} {
			c.Sim.SetServerTags(string(server), "role=k8s-node")
		}
		s := New(c, c, Options{ServerMetadata: map[string]string{"role": "k8s-node"}})
		life := func(server volume.ServerID, want int) {
			t.Helper()
			if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), server); err != nil {
				t.Fatal(err)
			}
			if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), server); err != nil {
				t.Fatal(err)
			}
			if got := c.Count("Server"); got != want {
				t.Errorf("%d reads of servers, want %d", got, want)
			}
		}
		life(cloudtest.ServerA, 1)
		life(cloudtest.ServerB, 2) // what is known of one says nothing about another
		time.Sleep(markedFor)
		life(cloudtest.ServerA, 3)
		if len(s.marked.until) != 1 {
			t.Errorf("kept: %v", s.marked.until)
		}
		c.AddServer(deletedServer, "ACTIVE")
		for want := 4; want <= 5; want++ {
			_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), deletedServer)
			if cloudtest.WantKind(t, err, volume.NotOwned, false); c.Count("Server") != want {
				t.Errorf("%d reads of servers, want %d", c.Count("Server"), want)
			}
		}
	})
}

// The node ID is what kubelet, or an attacker in its place, writes into a CSINode. Only a read that shows the mark of this very server is kept.
func TestOnlyAReadOfTheMarkMakesAServerKnown(t *testing.T) {
	for name, change := range map[string]func(c *cloudtest.Cloud){
		"without the mark":           func(*cloudtest.Cloud) {},
		"with a mark that is longer": func(c *cloudtest.Cloud) { c.Sim.SetServerTags(string(cloudtest.ServerA), "role=k8s-node-2") },
		"that cannot be read":        func(c *cloudtest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.PermissionDenied, "HTTP 403") },
		"that Nova does not have":    func(c *cloudtest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.NotFound, "HTTP 404") },
		"beside one that has it":     func(c *cloudtest.Cloud) { c.Sim.SetServerTags(string(cloudtest.ServerB), "role=k8s-node") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available))
				change(c)
				s := New(c, c, Options{ServerMetadata: map[string]string{"role": "k8s-node"}})
				_, _ = s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(2), cloudtest.ServerB)
				for range 2 {
					if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err == nil {
						t.Error("attached")
					}
				}
				if s.marked.known(cloudtest.ServerA) {
					t.Error("the server is known")
				}
			})
		})
	}
}

// A server that is no node neither gets a volume nor loses what is left of an attachment.
func TestAnAttachOfAServerWithoutTheMarkDeletesNoAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentErrorAttaching))
		_, err := New(c, c, Options{ServerMetadata: map[string]string{"role": "k8s-node"}}).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.NotOwned, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Errorf("calls: %v", c.Calls)
		}
	})
}
