package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func messagesOf(changes []v1alpha1.Change) []string {
	var messages []string
	for _, c := range changes {
		messages = append(messages, c.Message)
	}
	return messages
}

func TestEachChangeIsOneSentenceThatNamesOldAndNew(t *testing.T) {
	const base = "{metadata: {name: c}}"
	for _, test := range []struct {
		name string
		next v1alpha1.Inventory
		spec string
		want []string
	}{
		{"a type renamed", inventory("standard", "fast=quick"), base, []string{
			`cloud: volume type "fast" is renamed to "quick": StorageClass fast is replaced by quick`,
		}},
		{"a class renamed", inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {name: gold}}}}}", []string{
			"config: spec.storageClasses.overrides.fast.name changes from none to gold",
			"config: StorageClass fast is replaced by gold",
		}},
		{"a type less and one more", inventory("standard", "new"), base, []string{
			`cloud: volume type "fast" is gone: StorageClass fast is removed`,
			`cloud: volume type "new" is new: StorageClass new is added`,
		}},
		{"two settings of one group, and one of another", inventory("standard", "fast"), "{metadata: {name: c}, spec: {driver: {logLevel: 5, logFormat: json}, roles: {node: {priorityClassName: x}}}}", []string{
			"config: spec.driver.logFormat changes from text to json",
			"config: spec.driver.logLevel changes from 2 to 5",
			"config: spec.roles.node.priorityClassName changes from none to x",
			"config: driver.logLevel changes from 2 to 5",
			"config: driver.logFormat changes from text to json",
			"config: node.priorityClass changes from system-node-critical to x",
		}},
	} {
		old := read(t, decide(t, inventory("standard", "fast"), base, v1alpha1.Vanilla))
		if diff := cmp.Diff(test.want, messagesOf(compare(t, old, test.next, test.spec, v1alpha1.Vanilla))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A decision that is gone stands where it stood: after the one that it followed.
func TestChangesComeInTheOrderOfThePlan(t *testing.T) {
	planOf := func(value string, ids ...string) (p v1alpha1.Plan) {
		for _, id := range ids {
			p.Decisions = append(p.Decisions, v1alpha1.Decision{ID: id, Value: value})
		}
		return p
	}
	got := messagesOf(Compare(planOf("1", "a", "b", "c", "d", "e", "f"), planOf("2", "a", "c", "new", "f", "last"), Run{}))
	want := []string{
		"cloud: a changes from 1 to 2", "cloud: b is gone, it was 1", "cloud: c changes from 1 to 2", "cloud: d is gone, it was 1", "cloud: e is gone, it was 1",
		"cloud: new is new: 2", "cloud: f changes from 1 to 2", "cloud: last is new: 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALongValueIsCutAndAShortOneIsNot(t *testing.T) {
	planOf := func(value string) v1alpha1.Plan {
		return v1alpha1.Plan{Decisions: []v1alpha1.Decision{{ID: "a", Value: value}}}
	}
	fits, long := strings.Repeat("ä", longest), strings.Repeat("ä", longest+1)
	got := messagesOf(Compare(planOf(fits), planOf(long), Run{}))
	if diff := cmp.Diff([]string{"cloud: a changes from " + fits + " to " + fits + "…"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What only one of the plans names is no change of the cloud: the other one may just not have looked.
func TestAChangeOfTheCloudNamesTheFactsBeforeTheEffect(t *testing.T) {
	planOf := func(value string, facts ...v1alpha1.NamedFact) v1alpha1.Plan {
		return v1alpha1.Plan{Decisions: []v1alpha1.Decision{{ID: "a", Value: value, Facts: facts}}}
	}
	kept := v1alpha1.NamedFact{Name: "kept", Value: "x"}
	got := messagesOf(Compare(planOf("1", kept, v1alpha1.NamedFact{Name: "old", Value: "x"}, v1alpha1.NamedFact{Name: "moved", Value: "x"}),
		planOf("2", kept, v1alpha1.NamedFact{Name: "moved", Value: "y"}, v1alpha1.NamedFact{Name: "new", Value: "y"}), Run{}))
	want := []string{"cloud: moved changes from x to y: a changes from 1 to 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
