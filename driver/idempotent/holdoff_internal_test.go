package idempotent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// lostAnswer is the error of a create without an answer.
var lostAnswer = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()

func TestHoldOffsEndAndAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		h := holdOffs{most: most}
		for n := range most {
			_ = h.begin(fmt.Sprint("volume ", n), fmt.Sprint(n), lostAnswer)
		}
		time.Sleep(createHoldOff)
		for n := range most + 5 {
			_ = h.begin(fmt.Sprint("volume late-", n), fmt.Sprint(n), lostAnswer)
			if n < 10 {
				time.Sleep(time.Millisecond)
			}
		}
		if len(h.active) != most {
			t.Errorf("%d hold-offs", len(h.active))
		}
		if h.check("volume 1") != nil || h.check("volume late-4") != nil || h.check("volume late-5") == nil {
			t.Error("want those removed that end first")
		}
	})
}

func TestAnAnswerDoesNotShortenTheHoldOffOfALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holdOffs
		_ = h.begin("volume pvc-1", "pvc-1", lostAnswer)
		answered := volume.Errorf(volume.Unavailable, "HTTP 500").AfterWrite()
		answered.Answered = true
		_ = h.begin("volume pvc-1", "pvc-1", answered)
		time.Sleep(createHoldOff - time.Second)
		if h.check("volume pvc-1") == nil {
			t.Error("the create whose answer was lost may still be in progress")
		}
	})
}

func TestTheHoldOffNamesTheCauseWithoutTheObjectTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holdOffs
		lost := volume.Errorf(volume.Unavailable, `volume "pvc-1": Cinder answers HTTP 504: Gateway Timeout`).Op("create volume").Request("req-1").AfterWrite()
		want := "create volume pvc-1: outcome unknown (Cinder answers HTTP 504: Gateway Timeout (request req-1)); " +
			"the driver checks by name and retries the create after 00:02:00 UTC"
		if err := h.begin("volume pvc-1", "pvc-1", lost); err.Error() != want {
			t.Errorf("want %s\ngot  %v", want, err)
		}
		if err := h.check("volume pvc-1"); err.Error() != want {
			t.Errorf("want %s\ngot  %v", want, err)
		}
	})
}

// A create is forgotten once every read shows its object.
func TestWhatWasMadeIsForgottenOnceItShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m made
		m.put("1")
		time.Sleep(volume.Lag)
		m.put("2")
		if len(m.at) != 1 || !m.hidden("2") {
			t.Errorf("it remembers %v", m.at)
		}
	})
}
