package guard

import (
	"fmt"
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

// class is the decision of one StorageClass.
type class struct {
	id, name         string
	typeID, typeName string
	fields           map[string]any
}

func classOf(d decision) class {
	fields, _ := d.value.(map[string]any)
	c := class{id: d.ID, name: strings.TrimPrefix(d.ID, plan.ClassID), fields: fields, typeName: typeOf(fields)}
	if t, ok := fields[typeField].(map[string]any); ok {
		c.typeID, _ = t["id"].(string)
		c.typeName, _ = t["name"].(string)
	}
	return c
}

// typeOf is the parameter type of a class: the name of a volume type, or its id.
func typeOf(fields map[string]any) string {
	parameters, _ := fields["parameters"].(map[string]any)
	t, _ := parameters[contract.ParameterType].(string)
	return t
}

func classesOf(p v1alpha1.Plan, in map[string]decision) []class {
	var all []class
	for _, d := range p.Decisions {
		if strings.HasPrefix(d.ID, plan.ClassID) {
			all = append(all, classOf(in[d.ID]))
		}
	}
	return all
}

// classes reports the classes that come, go, or have another name. A class is followed by the ID of its volume type.
func (c *comparison) classes() {
	fresh := map[string]class{} // by id of the type
	var added []class
	for _, k := range classesOf(c.next, c.is) {
		if _, stays := c.was[k.id]; !stays {
			added = append(added, k)
			fresh[k.typeID] = k
		}
	}
	delete(fresh, "")
	for _, k := range classesOf(c.old, c.was) {
		if _, stays := c.is[k.id]; stays {
			continue
		}
		if now, renamed := fresh[k.typeID]; renamed {
			c.renamed(k, now)
			added = slices.DeleteFunc(added, func(a class) bool { return a.id == now.id })
			delete(fresh, k.typeID)
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
		Class: c.classOf(was.id, "", was.fields, nil), Decision: was.id, Field: "name", Old: was.name, New: is.name,
		Objects: []string{"StorageClass/" + was.name, "StorageClass/" + is.name},
	}
	slices.Sort(change.Objects)
	c.refuseRemoval(&change, was)
	effect := fmt.Sprintf("StorageClass %s is replaced by %s", was.name, is.name)
	if was.typeName != is.typeName {
		change.Facts = []string{fact{"volumeTypes[" + was.typeID + "].name", was.typeName, is.typeName}.String()}
		effect = fmt.Sprintf("volume type %q is renamed to %q: %s", was.typeName, is.typeName, effect)
	}
	c.add(change, "%s", effect)
}

func (c *comparison) removed(k class) {
	change := v1alpha1.Change{Class: c.classOf(k.id, "", k.fields, nil), Decision: k.id, Old: k.fields}
	c.refuseRemoval(&change, k)
	if c.otherTarget && change.Accept == "" {
		return
	}
	effect := fmt.Sprintf("StorageClass %s is removed", k.name)
	if change.Class == v1alpha1.CloudChange {
		effect = c.fate(k) + ": " + effect
	}
	c.add(change, "%s", effect)
}

func (c *comparison) added(k class) {
	if c.otherTarget {
		return
	}
	change := v1alpha1.Change{Class: c.classOf(k.id, "", nil, k.fields), Decision: k.id, New: k.fields}
	effect := fmt.Sprintf("StorageClass %s is added", k.name)
	if change.Class == v1alpha1.CloudChange {
		effect = c.origin(k) + ": " + effect
	}
	c.add(change, "%s", effect)
}

// fate is what became of the volume type of a class that is removed.
func (c *comparison) fate(k class) string {
	if c.offered(k) {
		return fmt.Sprintf("volume type %q gets no class any more", k.typeName)
	}
	for _, t := range c.run.Inventory.VolumeTypes.Value {
		if t.Name == k.typeName {
			return fmt.Sprintf("volume type %q is another one now (ID %s instead of %s)", k.typeName, t.ID, k.typeID)
		}
	}
	return fmt.Sprintf("volume type %q is gone", k.typeName)
}

// origin is where the volume type of a class that is added comes from: an old class shows that it is not new.
func (c *comparison) origin(k class) string {
	for _, old := range classesOf(c.old, c.was) {
		switch {
		case k.typeID == "" || old.typeID != k.typeID:
		case old.typeName != k.typeName:
			return fmt.Sprintf("volume type %q is renamed to %q", old.typeName, k.typeName)
		default:
			return fmt.Sprintf("volume type %q gets a class", k.typeName)
		}
	}
	for _, w := range c.old.Warnings {
		if strings.Contains(w, fmt.Sprintf("volume type %q", k.typeName)) { // the type was there, and could have no class
			return fmt.Sprintf("volume type %q gets a class", k.typeName)
		}
	}
	return fmt.Sprintf("volume type %q is new", k.typeName)
}

// offered says whether the cloud still has the volume type of a class.
func (c *comparison) offered(k class) bool {
	_, found := c.typeNow(k)
	return found
}

// typeNow is the volume type of a class as the cloud has it now. It finds the type by ID, or by name where an older plan holds no ID.
func (c *comparison) typeNow(k class) (v1alpha1.VolumeType, bool) {
	i := slices.IndexFunc(c.run.Inventory.VolumeTypes.Value, func(t v1alpha1.VolumeType) bool {
		return t.ID == k.typeID || k.typeID == "" && t.Name == k.typeName
	})
	if i < 0 {
		return v1alpha1.VolumeType{}, false
	}
	return c.run.Inventory.VolumeTypes.Value[i], true
}

func (c *comparison) refuseRemoval(change *v1alpha1.Change, k class) {
	change.Accept = ClassRemoved
	change.Refused = "claims that name StorageClass " + k.name + " would find no class"
	entry := c.pinned(k.name, k.fields)
	if t, found := c.typeNow(k); found && k.typeID != "" && t.Name != typeOf(k.fields) && typeOf(k.fields) != t.ID {
		// The old name would make every claim fail. The ID stays for as long as the type exists.
		entry["parameters"] = withType(k.fields["parameters"], t.ID)
		change.Refused += "; the pinned class names the volume type by ID. " + recreate(k.name)
	}
	change.Pin = m{"storageClasses": m{"extra": []any{entry}}}
	c.removeExtra(change, k.name)
	if c.otherTarget {
		change.Pin, change.Remove = nil, nil
	}
}

// recreate is what a person does about a class that Kubernetes cannot change in place.
func recreate(name string) string {
	return "Kubernetes cannot change parameters in place: run `kubectl delete storageclass " + name + "` before you apply; volumes stay as they are"
}

func withType(parameters any, id string) map[string]any {
	with := map[string]any{}
	if given, ok := parameters.(map[string]any); ok {
		for key, value := range given {
			with[key] = value
		}
	}
	with[contract.ParameterType] = id
	return with
}

// pinned is a class as an entry of storageClasses.extra that depends on no type of the cloud.
func (c *comparison) pinned(name string, was map[string]any) m {
	entry := m{"name": name, "reclaimPolicy": was["reclaimPolicy"], "parameters": was["parameters"]}
	for id, key := range map[string]string{plan.IDs.BindingMode.ID: "volumeBindingMode", plan.IDs.Expansion.ID: "allowVolumeExpansion"} {
		if value, ok := was[key]; ok && !equal(value, c.is[id].value) { // else the class has it by default
			entry[key] = value
		}
	}
	for _, key := range []string{"mountOptions", "annotations"} {
		if value, ok := was[key]; ok {
			entry[key] = value
		}
	}
	return entry
}
