package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// typeField is the volume type that a class was made for, in the value of its decision.
const typeField = "volumeType"

// ownFields are the values that the configuration may give to a class alone, by the field that says so.
var ownFields = map[string]string{
	"ownReclaimPolicy": "reclaimPolicy", "ownVolumeBindingMode": "volumeBindingMode", "ownAllowVolumeExpansion": "allowVolumeExpansion",
}

// typed is a class of either kind, which leads to a volume type.
type typed struct {
	kind, name string
	volumeType plan.VolumeType
	parameter  string // a name, or an ID
}

func (t typed) String() string { return t.kind + " " + t.name }

// typedOf is the class of a decision; false: it has none, or leads to no type.
func typedOf(value any) (typed, bool) {
	switch v := value.(type) {
	case plan.StorageClass:
		return typed{"StorageClass", v.Name, v.VolumeType, v.Parameters[contract.ParameterType]}, true
	case plan.AttributesClass:
		parameter := v.Parameters[contract.ParameterType]
		return typed{"VolumeAttributesClass", v.Name, v.VolumeType, parameter}, parameter != ""
	}
	return typed{}, false
}

// typeName is the name of the volume type that the class was made for. An older plan has it as parameter alone.
func (t typed) typeName() string { return cmp.Or(t.volumeType.Name, t.parameter) }

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

func (k class) typeName() string { return k.typed().typeName() }

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
		Class: c.classOf(was.id, "", was.value()), Decision: was.id, Field: "name", Old: was.Name, New: is.Name,
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
	change := v1alpha1.Change{Class: c.classOf(k.id, "", k.value()), Decision: k.id, Old: k.value()}
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
	change := v1alpha1.Change{Class: c.classOf(k.id, "", nil), Decision: k.id, New: k.value()}
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
	return c.becameOf(k.typed())
}

func (c *comparison) becameOf(k typed) string {
	was, name := k.volumeType.ID, k.typeName()
	now, named := c.offer(func(t v1alpha1.VolumeType) bool { return t.Name == name })
	old, stays := c.offer(func(t v1alpha1.VolumeType) bool { return t.ID == was && was != "" })
	switch {
	case stays && old.Name == name:
		return ""
	case named && stays:
		return fmt.Sprintf("volume type %q is another one now (ID %s instead of %s, which is called %q now)", name, now.ID, was, old.Name)
	case named:
		return fmt.Sprintf("volume type %q is another one now (ID %s instead of %s)", name, now.ID, was)
	case stays:
		return fmt.Sprintf("volume type %q is renamed to %q", name, old.Name)
	}
	return fmt.Sprintf("volume type %q is gone", name)
}

func (c *comparison) offer(is func(v1alpha1.VolumeType) bool) (v1alpha1.VolumeType, bool) {
	if i := slices.IndexFunc(c.run.Inventory.VolumeTypes.Value, is); i >= 0 {
		return c.run.Inventory.VolumeTypes.Value[i], true
	}
	return v1alpha1.VolumeType{}, false
}

func (k class) typed() typed {
	t, _ := typedOf(k.StorageClass)
	return t
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
	return c.offer(func(t v1alpha1.VolumeType) bool {
		return t.ID == k.VolumeType.ID || k.VolumeType.ID == "" && t.Name == k.typeName()
	})
}

func (c *comparison) refuseRemoval(change *v1alpha1.Change, k class) {
	change.Accept = ClassRemoved
	change.Refused = "claims that name StorageClass " + k.Name + " would find no class"
	entry := c.pinned(k)
	if t, found := c.typeNow(k); found && k.VolumeType.ID != "" && t.Name != k.parameter() && k.parameter() != t.ID {
		// The old name would make every claim fail. The ID stays for as long as the type exists.
		entry["parameters"] = withType(k.StorageClass, t.ID)
		change.Refused += "; the pinned class names the volume type by ID. " + recreate(k.typed())
	}
	change.Pin = m{"storageClasses": m{"extra": []any{entry}}}
	c.removeExtra(change, k.Name)
	if c.otherTarget {
		change.Pin, change.Remove = nil, nil
	}
}

// recreate is what a person does about a class that Kubernetes cannot change in place.
func recreate(k typed) string {
	return "Kubernetes cannot change parameters in place: run `kubectl delete " + strings.ToLower(k.kind) + " " + shell.Name(k.name, "NAME") + "` before you apply; volumes stay as they are"
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
