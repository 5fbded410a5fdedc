package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// typeField is the volume type that a class was made for, in the value of its decision.
const typeField = "volumeType"

// ownFields are the values that the configuration may give to a class alone, by the field that says so.
var ownFields = map[string]string{
	"ownReclaimPolicy": "reclaimPolicy", "ownVolumeBindingMode": "volumeBindingMode", "ownAllowVolumeExpansion": "allowVolumeExpansion",
}

// class is the decision of one StorageClass; without an id there is none.
type class struct {
	id string
	plan.StorageClass
}

func (d decided) class(id string) class {
	c, _ := d.by[id].Value.(plan.StorageClass)
	return class{d.by[id].ID, c}
}

// parameter is the volume type that the class asks for: a name, or an ID.
func (k class) parameter() string { return k.Parameters[contract.ParameterType] }

// typeName is the name of the volume type that the class was made for. An older plan has it as parameter alone.
func (k class) typeName() string { return cmp.Or(k.VolumeType.Name, k.parameter()) }

// value is the class as a value of a change; nil: there is none.
func (k class) value() any {
	if k.id == "" {
		return nil
	}
	return k.StorageClass
}

func unlessNone(t plan.VolumeType) any {
	if t == (plan.VolumeType{}) {
		return nil
	}
	return t
}

func classesOf(p v1alpha1.Plan, in decided) []class {
	var all []class
	for _, d := range p.Decisions {
		if strings.HasPrefix(d.ID, plan.ClassID) {
			all = append(all, in.class(d.ID))
		}
	}
	return all
}

// classes reports the classes that come, go, or have another name. A class is followed by the ID of its volume type.
func (c *comparison) classes() {
	fresh := map[string]class{} // by id of the type
	var added []class
	for _, k := range classesOf(c.next, c.is) {
		if _, stays := c.was.by[k.id]; !stays {
			added = append(added, k)
			fresh[k.VolumeType.ID] = k
		}
	}
	delete(fresh, "")
	for _, k := range classesOf(c.old, c.was) {
		if _, stays := c.is.by[k.id]; stays {
			continue
		}
		if now, renamed := fresh[k.VolumeType.ID]; renamed {
			c.renamed(k, now)
			added = slices.DeleteFunc(added, func(a class) bool { return a.id == now.id })
			delete(fresh, k.VolumeType.ID)
			continue
		}
		c.removed(k)
	}
	for _, k := range added {
		c.added(k)
	}
}

func (c *comparison) renamed(was, is class) {
	change := v1alpha1.Change{
		Class: c.classOf(was.id, "", was.value(), nil), Decision: was.id, Field: "name", Old: was.Name, New: is.Name,
		Objects: []string{"StorageClass/" + was.Name, "StorageClass/" + is.Name},
	}
	slices.Sort(change.Objects)
	c.refuseRemoval(&change, was)
	effect := fmt.Sprintf("StorageClass %s is replaced by %s", was.Name, is.Name)
	if was.typeName() != is.typeName() {
		change.Facts = []string{fact{"volumeTypes[" + was.VolumeType.ID + "].name", was.typeName(), is.typeName()}.String()}
		effect = fmt.Sprintf("volume type %q is renamed to %q: %s", was.typeName(), is.typeName(), effect)
	}
	c.add(change, "%s", effect)
}

func (c *comparison) removed(k class) {
	change := v1alpha1.Change{Class: c.classOf(k.id, "", k.value(), nil), Decision: k.id, Old: k.value()}
	c.refuseRemoval(&change, k)
	if c.otherTarget && change.Accept == "" {
		return
	}
	effect := fmt.Sprintf("StorageClass %s is removed", k.Name)
	if change.Class == v1alpha1.CloudChange {
		effect = c.fate(k) + ": " + effect
	}
	c.add(change, "%s", effect)
}

func (c *comparison) added(k class) {
	if c.otherTarget {
		return
	}
	change := v1alpha1.Change{Class: c.classOf(k.id, "", nil, k.value()), Decision: k.id, New: k.value()}
	effect := fmt.Sprintf("StorageClass %s is added", k.Name)
	if change.Class == v1alpha1.CloudChange {
		effect = c.origin(k) + ": " + effect
	}
	c.add(change, "%s", effect)
}

// fate is what became of the volume type of a class that is removed.
func (c *comparison) fate(k class) string {
	if c.offered(k) {
		return fmt.Sprintf("volume type %q gets no class any more", k.typeName())
	}
	for _, t := range c.run.Inventory.VolumeTypes.Value {
		if t.Name == k.typeName() {
			return fmt.Sprintf("volume type %q is another one now (ID %s instead of %s)", k.typeName(), t.ID, k.VolumeType.ID)
		}
	}
	return fmt.Sprintf("volume type %q is gone", k.typeName())
}

// origin is where the volume type of a class that is added comes from: an old class shows that it is not new.
func (c *comparison) origin(k class) string {
	for _, old := range classesOf(c.old, c.was) {
		switch {
		case k.VolumeType.ID == "" || old.VolumeType.ID != k.VolumeType.ID:
		case old.typeName() != k.typeName():
			return fmt.Sprintf("volume type %q is renamed to %q", old.typeName(), k.typeName())
		default:
			return fmt.Sprintf("volume type %q gets a class", k.typeName())
		}
	}
	for _, w := range c.old.Warnings {
		if strings.Contains(w, fmt.Sprintf("volume type %q", k.typeName())) { // the type was there, and could have no class
			return fmt.Sprintf("volume type %q gets a class", k.typeName())
		}
	}
	return fmt.Sprintf("volume type %q is new", k.typeName())
}

// offered says whether the cloud still has the volume type of a class.
func (c *comparison) offered(k class) bool {
	_, found := c.typeNow(k)
	return found
}

// typeNow is the volume type of a class as the cloud has it now. It finds the type by ID, or by name where an older plan holds no ID.
func (c *comparison) typeNow(k class) (v1alpha1.VolumeType, bool) {
	i := slices.IndexFunc(c.run.Inventory.VolumeTypes.Value, func(t v1alpha1.VolumeType) bool {
		return t.ID == k.VolumeType.ID || k.VolumeType.ID == "" && t.Name == k.typeName()
	})
	if i < 0 {
		return v1alpha1.VolumeType{}, false
	}
	return c.run.Inventory.VolumeTypes.Value[i], true
}

func (c *comparison) refuseRemoval(change *v1alpha1.Change, k class) {
	change.Accept = ClassRemoved
	change.Refused = "claims that name StorageClass " + k.Name + " would find no class"
	entry := c.pinned(k)
	if t, found := c.typeNow(k); found && k.VolumeType.ID != "" && t.Name != k.parameter() && k.parameter() != t.ID {
		// The old name would make every claim fail. The ID stays for as long as the type exists.
		entry["parameters"] = k.withType(t.ID)
		change.Refused += "; the pinned class names the volume type by ID. " + recreate(k.Name)
	}
	change.Pin = m{"storageClasses": m{"extra": []any{entry}}}
	c.removeExtra(change, k.Name)
	if c.otherTarget {
		change.Pin, change.Remove = nil, nil
	}
}

// recreate is what a person does about a class that Kubernetes cannot change in place.
func recreate(name string) string {
	return "Kubernetes cannot change parameters in place: run `kubectl delete storageclass " + name + "` before you apply; volumes stay as they are"
}

// withType are the parameters of the class with another volume type.
func (k class) withType(id string) map[string]string {
	with := maps.Clone(k.Parameters)
	if with == nil {
		with = map[string]string{}
	}
	with[contract.ParameterType] = id
	return with
}

// pinned is a class as an entry of storageClasses.extra that depends on no type of the cloud.
func (c *comparison) pinned(k class) m {
	entry := m{"name": k.Name, "reclaimPolicy": k.ReclaimPolicy, "parameters": k.Parameters}
	if k.VolumeBindingMode != c.is.BindingMode.Value { // else the class has it by default
		entry["volumeBindingMode"] = k.VolumeBindingMode
	}
	if k.AllowVolumeExpansion != c.is.Expansion.Value {
		entry["allowVolumeExpansion"] = k.AllowVolumeExpansion
	}
	if len(k.MountOptions) > 0 {
		entry["mountOptions"] = k.MountOptions
	}
	if len(k.Annotations) > 0 {
		entry["annotations"] = k.Annotations
	}
	return entry
}
