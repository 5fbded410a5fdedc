package driver_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// SIGTERM ends the context of Run.
func TestRPCsInProgressFinishWhenTheDriverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		made := make(chan error, 1)
		go func() {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
			made <- err
		}()
		time.Sleep(3 * time.Second) // virtual: the volume is being made
		d.Stop()
		if err := <-made; err != nil {
			t.Errorf("the RPC under way: %v", err)
		}
		if err := d.Wait(); err != nil {
			t.Errorf("the driver: %v", err)
		}
	})
}

func TestRPCsThatTakeTooLongAtTheEndOfTheDriverAreNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateVolume, time.Hour)
		d := startWith(t, sim, "--drain-timeout=5s")
		made := make(chan error, 1)
		go func() {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
			made <- err
		}()
		time.Sleep(3 * time.Second)
		stopped := time.Now()
		d.Stop()
		if err := <-made; !slices.Contains([]codes.Code{codes.Canceled, codes.Unavailable}, status.Code(err)) {
			t.Errorf("the RPC under way: %v", err)
		}
		if err := d.Wait(); err != nil || time.Since(stopped) != 5*time.Second {
			t.Errorf("the driver: %v after %v", err, time.Since(stopped))
		}
	})
}

// Kubernetes kills the process 30 seconds after SIGTERM. Nova gets 8 of them after the last RPC.
func TestTheDriverWaitsForNovaBeforeItEndsForALimitedTime(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{7 * time.Second: 3 * time.Second, time.Minute: 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d, _, _ := abandoned(t, takes)
			stopped := time.Now()
			d.Stop()
			if err := d.Wait(); err != nil || time.Since(stopped).Round(time.Second) != want {
				t.Errorf("%v: the driver ended with %v after %v, want %v", takes, err, time.Since(stopped), want)
			}
			time.Sleep(2 * time.Minute) // by then the request has ended
		})
	}
}
