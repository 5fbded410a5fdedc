package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Pin is the one part of a Distribution that keeps everything these changes would lose, nil where no configuration can. The keys to remove
// ask for a change: they must go before the pin is added.
func Pin(refused []v1alpha1.Change) (pin any, remove []string) {
	for _, c := range refused {
		if c.Pin != nil {
			pin = merge(pin, plainJSON(c.Pin))
		}
		remove = append(remove, c.Remove...)
	}
	slices.Sort(remove)
	return withoutRepetition(pin), slices.Compact(remove)
}

// withoutRepetition leaves one of equal items in each list.
func withoutRepetition(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = withoutRepetition(inner)
		}
	case []any:
		seen := map[string]bool{}
		return slices.DeleteFunc(v, func(item any) bool {
			text, _ := json.Marshal(item) // it was made of JSON
			twice := seen[string(text)]
			seen[string(text)] = true
			return twice
		})
	}
	return value
}

// merge adds b to a: objects key by key, and lists one after the other.
func merge(a, b any) any {
	x, isObject := a.(map[string]any)
	y, bothObjects := b.(map[string]any)
	if isObject && bothObjects {
		for key, value := range y {
			x[key] = merge(x[key], value)
		}
		return x
	}
	list, isList := a.([]any)
	more, bothLists := b.([]any)
	if !isList || !bothLists {
		return b
	}
	return append(list, more...)
}

// pinDriver keeps a driver name: by the rule that gave it, or as it is.
func (c *comparison) pinDriver(change *v1alpha1.Change, was any) {
	coexistence := map[any]string{contract.DriverName: v1alpha1.Adopt, v1alpha1.OwnDriverName: v1alpha1.SideBySide}[was]
	if c.next.Target == v1alpha1.Vanilla || coexistence == "" {
		change.Pin = m{"driver": m{"name": was}}
		return
	}
	change.Pin = m{"openshift": m{"coexistence": coexistence}}
	if c.next.Config.Driver.Name != "" {
		change.Remove = []string{"spec.driver.name"}
	}
}

func (c *comparison) pinClusterID(change *v1alpha1.Change, was any) {
	change.Pin = m{"clusterID": was}
	if id := c.next.Config.HyperShift.InfraID; id != "" && id != was {
		change.Remove = []string{"spec.hypershift.infraID"}
	}
}

func (c *comparison) pinTopology(change *v1alpha1.Change, was any) {
	topology := m{"mode": v1alpha1.Disabled}
	if was == true {
		topology["mode"] = v1alpha1.Enabled
		if zones := c.old.Config.Topology.ZoneMap; len(zones) > 0 && !maps.Equal(zones, c.next.Config.Topology.ZoneMap) {
			topology["zoneMap"] = zones
		}
	}
	change.Pin = m{"topology": topology}
}

// pinAttributesClass keeps an entry of attributesClasses. Where the configuration has it as before, the cloud changed what it means. Then the ID of the
// volume type keeps it, as long as the type exists.
func (c *comparison) pinAttributesClass(change *v1alpha1.Change, name string) {
	was, before := c.old.Config.AttributesClasses[name]
	is := c.next.Config.AttributesClasses[name]
	if !before {
		return
	}
	if reflect.DeepEqual(was, is) {
		value := c.was.by[plan.AttributesClassID+name].Value
		if t, found := c.typeOf(value); found {
			change.Pin = m{"attributesClasses": m{name: m{"type": t.ID}}}
		} else if k, _ := typedOf(value); k.volumeType.ID == "" && k.parameter != "" { // an older plan has the name alone
			change.Pin = m{"attributesClasses": m{name: m{"type": k.parameter}}}
		} else {
			change.Refused += typeGone
		}
		return
	}
	pin := m{"attributesClasses": m{name: was}}
	if version := c.old.Config.KubernetesVersion; version != c.next.Config.KubernetesVersion {
		pin["kubernetesVersion"] = version // the new one may serve no such class
	}
	change.Pin = pin
	for _, d := range differences("spec.attributesClasses."+name, plainJSON(was), plainJSON(is)) {
		if d.old == nil {
			change.Remove = append(change.Remove, d.path)
		}
	}
}

// typeOf is the volume type that a class led to, by its ID, as the cloud has it now.
func (c *comparison) typeOf(value any) (v1alpha1.VolumeType, bool) {
	k, _ := typedOf(value)
	return c.offer(func(t v1alpha1.VolumeType) bool { return k.volumeType.ID != "" && t.ID == k.volumeType.ID })
}

// pinDefault keeps the default class that the configuration names by a volume type. It names the type by ID, or the one that has its name now.
func (c *comparison) pinDefault(change *v1alpha1.Change, was string) {
	k := c.was.class(plan.ClassID + was)
	t, found := c.typeOf(k.StorageClass)
	if !found {
		t, found = c.offer(func(t v1alpha1.VolumeType) bool { return t.Name == k.typeName() })
	}
	if found {
		change.Pin = m{"storageClasses": m{"default": t.ID}}
		return
	}
	change.Refused += typeGone
}

const typeGone = "; its volume type is gone, so no configuration keeps it"

// pinClass keeps a class as it was: as an override of its type where the type made it, else as an extra class.
func (c *comparison) pinClass(change *v1alpha1.Change, name string) {
	id := plan.ClassID + name
	was, is := c.was.class(id), c.is.class(id)
	switch {
	case sameBesidesDriver(was, is): // pinDriver keeps the name, and nothing of the class is lost
	case c.is.by[id].Source == string(plan.FromConfig):
		c.pinExtra(change, was)
	case was.parameter() == is.parameter():
		c.pinOverride(change, was, is)
	default:
		for key, o := range c.next.Config.StorageClasses.Overrides {
			if o.Name == name { // the type has the class under a name of its own, which the extra class needs
				change.Remove = append(change.Remove, "spec.storageClasses.overrides."+key+".name")
				c.pinExtra(change, was)
			}
		}
	}
}

// sameBesidesDriver is whether a class has nothing else to keep than its provisioner, which the name of the driver decides.
func sameBesidesDriver(was, is class) bool {
	return was.ReclaimPolicy == is.ReclaimPolicy && was.VolumeBindingMode == is.VolumeBindingMode && maps.Equal(was.Parameters, is.Parameters)
}

// pinExtra keeps a class as an extra one. A type that has another name now is named by its ID.
func (c *comparison) pinExtra(change *v1alpha1.Change, was class) {
	entry := c.pinned(was)
	if t, found := c.typeNow(was); found && was.VolumeType.ID != "" && t.Name != was.parameter() {
		entry["parameters"] = withType(was.StorageClass, t.ID)
	}
	change.Pin = m{"storageClasses": m{"extra": []any{entry}}}
	c.removeExtra(change, was.Name)
}

// removeExtra names the entry of the configuration that has the name of a pinned class.
func (c *comparison) removeExtra(change *v1alpha1.Change, name string) {
	for i, e := range c.next.Config.StorageClasses.Extra {
		if e.Name == name {
			change.Remove = append(change.Remove, fmt.Sprintf("spec.storageClasses.extra[%d] (name: %s)", i, name))
		}
	}
}

// fsTypeKey is the parameter that fsType of an override sets.
const fsTypeKey = "csi.storage.k8s.io/fstype"

// pinOverride keeps what Kubernetes cannot change of the class of a type, under the key that the configuration has for the type already.
func (c *comparison) pinOverride(change *v1alpha1.Change, was, is class) {
	overrides := c.next.Config.StorageClasses.Overrides
	key := was.parameter()
	if _, byID := overrides[is.VolumeType.ID]; byID {
		key = is.VolumeType.ID
	}
	given, path := overrides[key], "spec.storageClasses.overrides."+key
	pin := m{}
	if was.ReclaimPolicy != is.ReclaimPolicy {
		pin["reclaimPolicy"] = was.ReclaimPolicy
	}
	if was.VolumeBindingMode != is.VolumeBindingMode {
		pin["volumeBindingMode"] = was.VolumeBindingMode
	}
	parameters := m{}
	for name, value := range was.Parameters {
		_, asParameter := given.Parameters[name]
		now, stays := is.Parameters[name]
		switch {
		case stays && value == now:
		case name == fsTypeKey && !asParameter:
			pin["fsType"] = value
		default:
			parameters[name] = value
		}
	}
	if len(parameters) > 0 {
		pin["parameters"] = parameters
	}
	if _, had := was.Parameters[fsTypeKey]; !had && given.FSType != "" {
		change.Remove = append(change.Remove, path+".fsType")
	}
	for name := range given.Parameters {
		if _, had := was.Parameters[name]; !had {
			change.Remove = append(change.Remove, path+".parameters."+name)
		}
	}
	slices.SortFunc(change.Remove, strings.Compare)
	if len(pin) > 0 {
		change.Pin = m{"storageClasses": m{"overrides": m{key: pin}}}
	}
}

// pinSnapshotClass keeps an entry of snapshots.classes. If another class is the default now, it stays so: two would be refused.
func (c *comparison) pinSnapshotClass(change *v1alpha1.Change, name string) {
	was, before := c.old.Config.Snapshots.Classes[name]
	if !before {
		return
	}
	for _, other := range c.next.Config.Snapshots.Classes {
		was.Default = was.Default && !other.Default
	}
	change.Pin = m{"snapshots": m{"classes": m{name: was}}}
}
