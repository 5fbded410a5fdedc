package operation

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAnOperationIsListedFromItsFirstRPCUntilOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l List
		attach := Key{"ControllerPublishVolume", "volume v server s"}
		began := time.Now()
		ctx, p := volume.WithProgress(t.Context())
		end := l.Begin(attach, p)
		time.Sleep(time.Second)
		endStep := volume.BeginStep(ctx, "waiting for volume v to become attached")
		volume.NoteState(ctx, "volume v is attaching")
		volume.NoteRequest(ctx, "req-1")
		time.Sleep(40 * time.Second)
		stepSince := began.Add(time.Second)
		want := Operation{
			Method: attach.Method, Object: attach.Object, Since: began, RPCs: 1, Running: true, Step: "waiting for volume v to become attached", StepSince: &stepSince,
			State: "volume v is attaching", Requests: []string{"req-1"},
		}
		if diff := cmp.Diff([]Operation{want}, l.Pending()); diff != "" {
			t.Errorf("in its first RPC (-want +got):\n%s", diff)
		}
		if age := time.Since(l.Pending()[0].Since); age != 41*time.Second {
			t.Errorf("age %v", age)
		}

		endStep()
		end("DeadlineExceeded", strings.Repeat("waited ", 1000), "attach.stuck")
		time.Sleep(time.Minute)
		got := l.Pending()
		if len(got) != 1 || got[0].Running || got[0].Step != "" || got[0].LastCause != "attach.stuck" || got[0].LastCode != "DeadlineExceeded" || len(got[0].LastError) != maxError || !got[0].Since.Equal(began) {
			t.Errorf("between two RPCs: %+v", got)
		}

		_, p = volume.WithProgress(t.Context())
		end = l.Begin(attach, p)
		if got := l.Pending(); len(got) != 1 || got[0].RPCs != 2 || !got[0].Running {
			t.Errorf("in its second RPC: %+v", got)
		}
		end("OK", "", "")
		if got := l.Pending(); len(got) != 0 {
			t.Errorf("after its success: %+v", got)
		}
	})
}

func TestOperationsAreSortedByAgeAndForgottenWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l List
		l.Begin(Key{"DeleteVolume", "volume old"}, &volume.Progress{})("Aborted", "busy", "")
		time.Sleep(time.Minute)
		running := l.Begin(Key{"DeleteVolume", "volume young"}, &volume.Progress{})
		names := func() string {
			var all []string
			for _, o := range l.Pending() {
				all = append(all, o.Object)
			}
			return strings.Join(all, ", ")
		}
		if got := names(); got != "volume old, volume young" {
			t.Errorf("got %s", got)
		}
		time.Sleep(ForgetAfter)
		if got := names(); got != "volume young" {
			t.Errorf("after %v: %s", ForgetAfter, got)
		}
		running("Internal", "no", "")
		time.Sleep(ForgetAfter + time.Second)
		again := l.Begin(Key{"DeleteVolume", "volume young"}, &volume.Progress{}) // nobody read the list in between
		if got := l.Pending(); len(got) != 1 || got[0].RPCs != 1 || !got[0].Since.Equal(time.Now()) {
			t.Errorf("a later operation of the same name counts as the forgotten one: %+v", got)
		}
		again("Internal", "no", "")
		running2 := l.Begin(Key{"DeleteVolume", "volume young"}, &volume.Progress{})
		running3 := l.Begin(Key{"DeleteVolume", "volume young"}, &volume.Progress{})
		running2("OK", "", "")
		running3("Aborted", "busy", "") // the operation has ended before; its late RPC does not bring it back
		if got := names(); got != "" {
			t.Errorf("got %s", got)
		}
	})
}

func TestAFullListTakesNoMoreOperations(t *testing.T) {
	var l List
	for i := range mostListed + 10 {
		l.Begin(Key{"CreateVolume", strconv.Itoa(i)}, &volume.Progress{})("Aborted", strings.Repeat("ä", maxError), "")
	}
	got := l.Pending()
	if len(got) != mostListed || !utf8.ValidString(got[0].LastError) || len(got[0].LastError) > maxError {
		t.Errorf("%d operations, an error of %d bytes", len(got), len(got[0].LastError))
	}
	l.Begin(Key{"CreateVolume", "0"}, &volume.Progress{})("OK", "", "")
	l.Begin(Key{"CreateVolume", "new"}, &volume.Progress{})
	if got := l.Pending(); len(got) != mostListed || got[len(got)-1].Object != "new" {
		t.Errorf("the place of an operation that ended is not taken: %d", len(got))
	}
}
