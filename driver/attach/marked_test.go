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
