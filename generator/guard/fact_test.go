package guard

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const plainConfig = "{metadata: {name: c}}"

// A class is followed by the ID of its volume type, so each of these is drift with a line that says what happened.
func TestATypeThatIsAnotherOneUnderItsNameIsReported(t *testing.T) {
	swapped := inventory("standard=fast", "fast=standard")
	again := inventory("standard", "other=fast")
	shifted := inventory("standard", "fast=quick", "new=fast")
	const pinned = "{metadata: {name: c}, spec: {storageClasses: {exclude: [fast, quick], extra: [{name: gold, parameters: {type: id-fast}}]}}}"
	lossy := func(id string) v1alpha1.Inventory {
		inv := inventory("standard")
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: id, Name: "Fast SSD"})
		return inv
	}
	for _, test := range []struct {
		name      string
		old, next v1alpha1.Inventory
		spec      string
		want      []string
	}{
		{"made again", inventory("standard", "fast"), again, plainConfig, []string{
			`cloud: volume type "fast" is another one now (ID id-other instead of id-fast): new volumes of StorageClass fast go there`,
		}},
		{"swapped", inventory("standard", "fast"), swapped, plainConfig, []string{
			`cloud: volume type "fast" is another one now (ID id-standard instead of id-fast, which is called "standard" now): new volumes of StorageClass fast go there`,
			`cloud: volume type "standard" is another one now (ID id-fast instead of id-standard, which is called "fast" now): new volumes of StorageClass standard go there; it is the default class`,
		}},
		{"renamed, and its name given to a new one", inventory("standard", "fast"), shifted, plainConfig, []string{
			`cloud: volume type "fast" is renamed to "quick": StorageClass quick is added`,
			`cloud: volume type "fast" is another one now (ID id-new instead of id-fast, which is called "quick" now): new volumes of StorageClass fast go there`,
		}},
		{"renamed, with a class that names it by ID", inventory("standard", "fast"), inventory("standard", "fast=quick"), pinned, []string{
			`cloud: volume type "fast" is renamed to "quick": StorageClass gold stays as it is`,
		}},
		{"gone, with a class that names it by ID", inventory("standard", "fast"), inventory("standard"), pinned, []string{
			`cloud: volume type "fast" is gone (ID id-fast): StorageClass gold stays as it is, and new volumes of it fail`,
		}},
		{"there again, with a class that names it by ID", inventory("standard"), inventory("standard", "fast"), pinned, []string{
			`cloud: the cloud has volume type "fast" now, with ID id-fast: StorageClass gold stays as it is`,
		}},
		{"made again, with an ID in the name of its class", lossy("a"), lossy("b"), plainConfig, []string{
			`cloud: volume type "Fast SSD" is another one now (ID b instead of a): StorageClass fast-ssd-ca978112ca1b is removed`,
			`cloud: volume type "Fast SSD" is new: StorageClass fast-ssd-3e23e8160039 is added`,
		}},
	} {
		old := read(t, decide(t, test.old, test.spec, v1alpha1.Vanilla))
		got := messagesOf(compare(t, old, test.next, test.spec, v1alpha1.Vanilla))
		got = notWarnings(got)
		if test.name == "made again, with an ID in the name of its class" { // the hash is not the subject
			for i := range got {
				got[i], test.want[i] = cutHash(got[i]), cutHash(test.want[i])
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func notWarnings(messages []string) []string {
	var rest []string
	for _, m := range messages {
		if !strings.Contains(m, "warning") {
			rest = append(rest, m)
		}
	}
	return rest
}

// cutHash is a line without the hash in the name of its class.
func cutHash(line string) string {
	before, after, _ := strings.Cut(line, "StorageClass fast-ssd-")
	_, after, _ = strings.Cut(after, " ")
	return before + "StorageClass fast-ssd-… " + after
}

// A fact that a decision no longer names has not vanished, and one that it begins to name has not come.
func TestALineNamesOnlyFactsThatTheCloudChanged(t *testing.T) {
	zones := func(names ...string) v1alpha1.Fact[[]v1alpha1.Zone] {
		fact := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known}
		for _, n := range names {
			fact.Value = append(fact.Value, v1alpha1.Zone{Name: n, Available: true})
		}
		return fact
	}
	cloud := func(typeName string, volume ...string) v1alpha1.Inventory {
		inv := inventory("standard", "local="+typeName)
		inv.Zones = v1alpha1.Zones{Compute: zones("a", "b"), Volume: zones(volume...)}
		inv.VolumeTypes.Value[1].Zones = []string{"a"}
		return inv
	}
	for _, test := range []struct {
		name      string
		old, next v1alpha1.Inventory
	}{
		{"a volume zone is gone", cloud("local", "a", "b"), cloud("local", "a")},
		{"a volume zone is there again", cloud("local", "a"), cloud("local", "a", "b")},
	} {
		for _, name := range []string{"local", "a = b", "a: b -> c", "x].zones = a"} {
			test.old.VolumeTypes.Value[1].Name, test.next.VolumeTypes.Value[1].Name = name, name
			old := read(t, decide(t, test.old, plainConfig, v1alpha1.Vanilla))
			for _, c := range compare(t, old, test.next, plainConfig, v1alpha1.Vanilla) {
				for _, f := range c.Facts {
					if !strings.HasPrefix(f, "zones.volume: ") {
						t.Errorf("%s, type %q: want no fact but the volume zones, got %q in %s", test.name, name, f, c.Message)
					}
				}
				if strings.Contains(c.Message, "].zones changes") {
					t.Errorf("%s, type %q: the zones of the type did not change: %s", test.name, name, c.Message)
				}
			}
		}
	}
}

func TestAFactOfATypeIsReadWithItsName(t *testing.T) {
	for _, name := range []string{"local", "a = b", "a: b -> c", "x].zones = a"} {
		inv := inventory("standard", "id="+name)
		next := inventory("standard", "id="+name)
		zones := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "az1"}, {Name: "az2"}}}
		inv.Zones, next.Zones = v1alpha1.Zones{Compute: zones, Volume: zones}, v1alpha1.Zones{Compute: zones, Volume: zones}
		inv.VolumeTypes.Value[1].Zones, next.VolumeTypes.Value[1].Zones = []string{"az1"}, []string{"az2"}
		old := read(t, decide(t, inv, plainConfig, v1alpha1.Vanilla))
		changes := compare(t, old, next, plainConfig, v1alpha1.Vanilla)
		want := "cloud: volumeTypes[" + name + "].zones changes from az1 to az2: StorageClass"
		if len(changes) != 1 || !strings.HasPrefix(changes[0].Message, want) {
			t.Errorf("type %q: want one change that begins %q, got %v", name, want, messagesOf(changes))
		}
	}
}

// The generator gave the fact of a volume type another name. An unchanged cloud is no change of the cloud.
func TestAFactUnderItsFormerNameIsAChangeOfTheGenerator(t *testing.T) {
	cloud := inventory("standard", "fast")
	old := read(t, decide(t, cloud, plainConfig, v1alpha1.Vanilla))
	renamed := 0
	for i, d := range old.Decisions {
		for j, f := range d.Facts {
			if name, of, found := strings.Cut(f.Name, "["); found && name == "volumeTypes" && strings.HasSuffix(of, "].id") {
				old.Decisions[i].Facts[j] = v1alpha1.NamedFact{Name: "volumeTypes has " + strconv.Quote(strings.TrimSuffix(of, "].id"))}
				renamed++
			}
		}
	}
	changes := compare(t, old, cloud, plainConfig, v1alpha1.Vanilla)
	if renamed == 0 || len(changes) == 0 {
		t.Fatalf("want a line for each of %d facts, got none", renamed)
	}
	for _, c := range changes {
		if c.Class != v1alpha1.GeneratorChange {
			t.Errorf("want a change of the generator, got %s: %s", c.Class, c.Message)
		}
	}
}
