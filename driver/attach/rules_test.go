package attach

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// attachAction and detachAction are the actions for a volume whose type allows one server.
func attachAction(status volume.Status, attachment volume.AttachStatus, nova novaState) action {
	return attachRules.next(observation{volume: volume.Volume{Status: status}, attachment: volume.Attachment{Status: attachment}, nova: nova})
}

func detachAction(status volume.Status, attachment volume.AttachStatus, nova novaState) action {
	return detachRules.next(observation{volume: volume.Volume{Status: status}, attachment: volume.Attachment{Status: attachment}, nova: nova})
}

func inTransition(status volume.Status) bool {
	return stateOf(volume.Volume{Status: status}) == stateInTransition
}

// A rule that an earlier one hides decides nothing, and its reader would believe it.
func TestEveryRuleDecidesSomeSituation(t *testing.T) {
	for verb, all := range map[string]rules{"attach": attachRules, "detach": detachRules} {
		reached := make([]bool, len(all))
		for _, seen := range everySituation() {
			if i := slices.IndexFunc(all, func(r rule) bool { return r.matches(seen) }); i >= 0 {
				reached[i] = true
			}
		}
		for i, is := range reached {
			if !is {
				t.Errorf("%s: rule %d, %+v, is never reached", verb, i, all[i])
			}
		}
	}
}

// everySituation is every status of a volume, with a type for one server and for several, every attachment status and every state of Nova.
func everySituation() []observation {
	var all []observation
	for _, status := range append(volume.Statuses(), "of a later Cinder") {
		for _, shared := range []bool{false, true} {
			for _, attachment := range append(slices.Clone(everyAttachStatus), "of a later Cinder") {
				for nova := range novaStateCount {
					all = append(all, observation{
						volume:     volume.Volume{Status: status, Multiattach: shared},
						attachment: volume.Attachment{Status: attachment}, nova: novaState(nova),
					})
				}
			}
		}
	}
	return all
}

// Before the driver has read attachments and Nova, it deletes nothing and reports no success: it has read only the volume.
func TestTheVolumeAloneNeverProvesTheEnd(t *testing.T) {
	for _, seen := range everySituation() {
		if seen.nova != novaNotRead {
			continue
		}
		for verb, all := range map[string]rules{"attach": attachRules, "detach": detachRules} {
			next := all.next(seen)
			if slices.Contains([]action{done, deleteStale, conflict, waitForNova, serverNotFound, novaStateUnknown}, next) {
				t.Errorf("%s of a volume %s with attachment %q: %s", verb, seen.volume.Status, seen.attachment.Status, next)
			}
		}
	}
}

// What is not known to the driver changes nothing, and a type that allows several servers changes only the refusal of a second one.
func TestUnknownStatusesWaitAndSharedVolumesDifferInOneAction(t *testing.T) {
	for _, seen := range everySituation() {
		for verb, all := range map[string]rules{"attach": attachRules, "detach": detachRules} {
			at := fmt.Sprintf("%s of a volume %s, shared %t, attachment %q, Nova: %s", verb, seen.volume.Status, seen.volume.Multiattach, seen.attachment.Status, seen.nova)
			next := all.next(seen)
			if seen.volume.Status == "of a later Cinder" && (next == send || next == deleteStale) {
				t.Errorf("%s: %s", at, next)
			}
			if seen.attachment.Status == "of a later Cinder" && (next == deleteStale || next == send && verb == "detach") {
				t.Errorf("%s: %s", at, next)
			}
			single := seen
			single.volume.Multiattach = false
			if want := all.next(single); next != want && !(want == attachedElsewhere && next == send) {
				t.Errorf("%s: %s, and %s without", at, next, want)
			}
		}
	}
}
