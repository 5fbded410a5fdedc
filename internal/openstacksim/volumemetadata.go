package openstacksim

import (
	"maps"
	"net/http"
)

func (s *Sim) showMetadata(c *call) reply {
	v, missing := s.visible(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	return reply{status: http.StatusOK, body: obj{{"metadata", v.metadata}}}
}

func (s *Sim) mergeMetadata(c *call) reply {
	return s.changeMetadata(c, func(v *volume, m map[string]string) { maps.Copy(v.metadata, m) })
}

func (s *Sim) replaceMetadata(c *call) reply {
	return s.changeMetadata(c, func(v *volume, m map[string]string) { v.metadata = m })
}

func (s *Sim) changeMetadata(c *call, change func(*volume, map[string]string)) reply {
	body, bad := c.decode()
	if bad != nil {
		return *bad
	}
	if _, ok := body["metadata"]; !ok {
		return fault(http.StatusBadRequest, "'metadata' is a required property")
	}
	m, bad := metadataOf(body["metadata"], "'object'")
	if bad != nil {
		return *bad
	}
	v, missing := s.visible(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	change(v, m)
	v.update()
	return reply{status: http.StatusOK, body: obj{{"metadata", maps.Clone(v.metadata)}}}
}

// item finds a volume that has the metadata key of the path.
func (s *Sim) item(c *call) (*volume, string, *reply) {
	v, missing := s.visible(c, c.vars["id"])
	if missing != nil {
		return nil, "", missing
	}
	value, ok := v.metadata[c.vars["key"]]
	if !ok {
		r := fault(http.StatusNotFound, "Volume "+v.id+" has no metadata with key "+c.vars["key"]+".")
		return nil, "", &r
	}
	return v, value, nil
}

func (s *Sim) showMetadataItem(c *call) reply {
	_, value, missing := s.item(c)
	if missing != nil {
		return *missing
	}
	return reply{status: http.StatusOK, body: obj{{"meta", obj{{c.vars["key"], value}}}}}
}

func (s *Sim) setMetadataItem(c *call) reply {
	body, bad := c.decode()
	if bad != nil {
		return *bad
	}
	m, bad := metadataOf(body["meta"], "'object'")
	if bad != nil {
		return *bad
	}
	value, ok := m[c.vars["key"]]
	if !ok {
		return fault(http.StatusBadRequest, "Request body and URI mismatch")
	}
	v, missing := s.visible(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	v.metadata[c.vars["key"]] = value
	v.update()
	return reply{status: http.StatusOK, body: obj{{"meta", obj{{c.vars["key"], value}}}}}
}

func (s *Sim) deleteMetadataItem(c *call) reply {
	v, _, missing := s.item(c)
	if missing != nil {
		return *missing
	}
	delete(v.metadata, c.vars["key"])
	v.update()
	return reply{status: http.StatusOK}
}
