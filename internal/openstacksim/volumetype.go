package openstacksim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// AddVolumeType adds a type and returns its ID. It generates a missing ID or creation time. It replaces a type of that name.
func (s *Sim) AddVolumeType(t VolumeType) string {
	defer s.lock()()
	return s.addVolumeType(t).ID
}

func (s *Sim) addVolumeType(t VolumeType) *VolumeType {
	if t.ID == "" {
		t.ID = s.newID()
	}
	t.CreatedAt = cmp.Or(t.CreatedAt, now())
	t.ExtraSpecs = cloneOrEmpty(t.ExtraSpecs)
	s.types = slices.DeleteFunc(s.types, func(old *VolumeType) bool { return old.Name == t.Name })
	s.types = append(s.types, &t)
	slices.SortFunc(s.types, func(a, b *VolumeType) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
	})
	return &t
}

// RemoveVolumeType removes a type by name. Volumes of the type stay.
func (s *Sim) RemoveVolumeType(name string) {
	defer s.lock()()
	s.types = slices.DeleteFunc(s.types, func(t *VolumeType) bool { return t.Name == name })
}

// SetDefaultVolumeType sets the type of volumes whose request names none. If the type does not exist, such requests fail with
// 500.
func (s *Sim) SetDefaultVolumeType(name string) { assign(s, &s.defaultType, name) }

func (s *Sim) typeByName(name string) *VolumeType {
	for _, t := range s.types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (s *Sim) visibleType(c *call, id string) *VolumeType {
	for _, t := range s.types {
		if t.ID == id && (t.listed(c) || c.token.admin()) {
			return t
		}
	}
	panic(fault(http.StatusNotFound, "Volume type "+id+" could not be found."))
}

// listed reports whether a list that names no visibility has the type: it is public, or private and granted to the project.
func (t *VolumeType) listed(c *call) bool {
	return !t.Private || c.token.project != nil && slices.Contains(t.Projects, c.token.project.Name)
}

func (s *Sim) typeNamed(c *call, nameOrID string) *VolumeType {
	for _, t := range s.types {
		if t.ID == nameOrID || sameText(t.Name, nameOrID) {
			return s.visibleType(c, t.ID)
		}
	}
	if isUUID(nameOrID) {
		return s.visibleType(c, nameOrID)
	}
	panic(fault(http.StatusNotFound, "Volume type with name "+nameOrID+" could not be found."))
}

// userVisible are the extra specs that Cinder shows to every user.
var userVisible = []string{"RESKEY:availability_zones", "multiattach", "replication_enabled"}

func (t *VolumeType) specs(c *call) map[string]string {
	specs := maps.Clone(t.ExtraSpecs)
	if !c.token.admin() {
		maps.DeleteFunc(specs, func(k, _ string) bool { return !slices.Contains(userVisible, k) })
	}
	return specs
}

// plain is the type without the fields of the extensions.
func (t *VolumeType) plain(c *call) obj {
	o := obj{{"id", t.ID}, {"name", t.Name}, {"is_public", !t.Private}, {"description", orNull(t.Description)}}
	// Victoria shows the extra specs to administrators alone. In Zed an application credential for the role member lacks the role reader.
	return o.when(c.token.admin() || c.token.has("reader") && !c.beforeZed, pair{"extra_specs", t.specs(c)})
}

func (t *VolumeType) view(c *call, access bool) obj {
	return t.plain(c).when(c.token.admin(), pair{"qos_specs_id", nil}).when(access, pair{"os-volume-type-access:is_public", !t.Private})
}

var typeFields = fields[*VolumeType]{
	"id":         func(t *VolumeType) string { return t.ID },
	"name":       func(t *VolumeType) string { return t.Name },
	"created_at": func(t *VolumeType) string { return sortTime(t.CreatedAt) },
}

// showsTypeAccess reports whether a type has the field of the extension for access, which a reader sees before Cinder 29.
func (s *Sim) showsTypeAccess(c *call) bool { return !s.mayOnlyRead(c) }

func (s *Sim) listTypes(c *call) reply {
	q := c.listQuery([]string{"is_public", "extra_specs"}, []string{"id", "name", "created_at", "updated_at"})
	public, asked := q.pop("is_public")
	all := []*VolumeType{}
	for _, t := range s.types {
		switch {
		case !c.token.admin():
			if t.listed(c) {
				all = append(all, t)
			}
		case !asked || public == "None" || public == "none":
			if asked || t.listed(c) {
				all = append(all, t)
			}
		case isTrue(public) != t.Private || isTrue(public) && t.listed(c):
			all = append(all, t)
		}
	}
	if !slices.ContainsFunc(all, func(t *VolumeType) bool { return t.ID == q.marker }) {
		q.marker = "" // for types only, Cinder ignores an unknown marker
	}
	items, _, more, _ := page(q, all, typeFields, func(t *VolumeType, f param) bool {
		return f.key == "extra_specs" && hasPairs(t.ExtraSpecs, f.value, func(a, b string) bool { return a == b })
	})
	body := pageBody("volume_types", items, func(t *VolumeType) obj { return t.view(c, s.showsTypeAccess(c)) })
	if more {
		body = append(body, pair{"volume_type_links", c.nextLink(c.collection("types", false), items[len(items)-1].ID)})
	}
	return reply{status: http.StatusOK, body: body}
}

func (s *Sim) showType(c *call) reply {
	if c.vars["id"] == "default" {
		t := s.typeByName(s.defaultType)
		if t == nil {
			return fault(http.StatusNotFound, "Default volume type can not be found.")
		}
		return reply{status: http.StatusOK, body: obj{{"volume_type", t.view(c, false)}}}
	}
	t := s.visibleType(c, c.vars["id"])
	return reply{status: http.StatusOK, body: obj{{"volume_type", t.view(c, s.showsTypeAccess(c))}}}
}

func (s *Sim) createType(c *call) reply {
	body := c.object("volume_type", true, "name", "description", "extra_specs", "os-volume-type-access:is_public")
	c.adminOnly("volume_extension:type_create")
	name, _ := body["name"].(string)
	name = strings.TrimSpace(name)
	if given, ok := body["name"]; !ok {
		return invalid("volume_type", c.raw("volume_type"), "'name' is a required property")
	} else if name == "" {
		return invalid("name", given, python(given)+" is too short")
	}
	if s.typeByName(name) != nil {
		return fault(http.StatusConflict, "Volume Type "+name+" already exists.")
	}
	t := VolumeType{Name: name, CreatedAt: time.Now().UTC()}
	t.Description, _ = body["description"].(string)
	if specs, ok := body["extra_specs"].(map[string]any); ok {
		t.ExtraSpecs = stringMap(specs)
	}
	if public, ok := body["os-volume-type-access:is_public"]; ok {
		t.Private = !isTrue(strings.ToLower(bare(public)))
	}
	made := s.addVolumeType(t)
	answer := append(made.plain(c), pair{"os-volume-type-access:is_public", !made.Private})
	return reply{status: http.StatusOK, body: obj{{"volume_type", answer}}}
}

func (s *Sim) updateType(c *call) reply {
	body := c.object("volume_type", true, "name", "description", "is_public")
	c.adminOnly("volume_extension:type_update")
	t := s.visibleType(c, c.vars["id"])
	if name, ok := body["name"].(string); ok {
		t.Name = strings.TrimSpace(name)
	}
	if text, ok := body["description"].(string); ok {
		t.Description = text
	}
	if public, ok := body["is_public"]; ok {
		t.Private = !isTrue(bare(public))
	}
	return reply{status: http.StatusOK, body: obj{{"volume_type", t.plain(c)}}}
}

func (s *Sim) deleteType(c *call) reply {
	c.adminOnly("volume_extension:type_delete")
	t := s.visibleType(c, c.vars["id"])
	switch {
	case len(where(maps.Values(s.volumes), func(v *volume) bool { return v.kind == t })) > 0:
		return fault(http.StatusBadRequest, "Target volume type is still in use.")
	case t.Name == s.defaultType:
		return fault(http.StatusBadRequest, "The volume type "+t.ID+" is a default volume type and cannot be deleted.")
	}
	s.types = slices.DeleteFunc(s.types, func(x *VolumeType) bool { return x == t })
	return reply{status: http.StatusAccepted}
}

// showSpecs refuses members of Victoria before it looks for the type.
func (s *Sim) showSpecs(c *call) reply {
	if c.beforeZed && !c.token.admin() {
		return forbidden("volume_extension:types_extra_specs:index")
	}
	t := s.visibleType(c, c.vars["id"])
	return reply{status: http.StatusOK, body: obj{{"extra_specs", t.specs(c)}}}
}

func (s *Sim) showSpec(c *call) reply {
	t := s.visibleType(c, c.vars["id"])
	key := c.vars["key"]
	value, ok := t.specs(c)[key]
	if !ok {
		return fault(http.StatusNotFound, "Volume Type "+t.ID+" has no extra specs with key "+key+".")
	}
	return reply{status: http.StatusOK, body: obj{{key, value}}}
}

func (s *Sim) setSpecs(c *call) reply {
	c.adminOnly("volume_extension:types_extra_specs:create")
	body := c.decode()
	t := s.visibleType(c, c.vars["id"])
	specs, _ := body["extra_specs"].(map[string]any)
	maps.Copy(t.ExtraSpecs, stringMap(specs))
	return reply{status: http.StatusOK, body: obj{{"extra_specs", stringMap(specs)}}}
}

func (s *Sim) deleteSpec(c *call) reply {
	c.adminOnly("volume_extension:types_extra_specs:delete")
	t := s.visibleType(c, c.vars["id"])
	key := c.vars["key"]
	if _, ok := t.ExtraSpecs[key]; !ok {
		return fault(http.StatusNotFound, "Volume Type "+t.ID+" has no extra specs with key "+key+".")
	}
	delete(t.ExtraSpecs, key)
	return c.accepted(http.StatusAccepted)
}

// showEncryption refuses members before it looks for the type, as Cinder does.
func (s *Sim) showEncryption(c *call) reply {
	c.adminOnly("volume_extension:volume_type_encryption:get")
	t := s.visibleType(c, c.vars["id"])
	e := t.Encryption
	if e == nil {
		return reply{status: http.StatusOK, body: obj{}}
	}
	var size any
	if e.KeySize > 0 {
		size = e.KeySize
	}
	return reply{status: http.StatusOK, body: obj{
		{"volume_type_id", t.ID},
		{"encryption_id", FixedID("encryption", t.ID)},
		{"key_size", size},
		{"provider", e.Provider},
		{"control_location", e.Location},
		{"cipher", orNull(e.Cipher)},
		{"created_at", micros(t.CreatedAt)},
		{"updated_at", nil},
		{"deleted_at", nil},
		{"deleted", false},
	}}
}
