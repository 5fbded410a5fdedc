package openstacksim

import (
	"maps"
	"net/http"
	"strings"
)

func (s *Sim) mergeMetadata(c *call) reply {
	return s.changeMetadata(c, "volume:create_volume_metadata", func(v *volume, m map[string]string) { maps.Copy(v.metadata, m) })
}

func (s *Sim) replaceMetadata(c *call) reply {
	return s.changeMetadata(c, "volume:update_volume_metadata", func(v *volume, m map[string]string) { v.metadata = m })
}

func (s *Sim) changeMetadata(c *call, policy string, change func(*volume, map[string]string)) reply {
	body := c.decode()
	if _, ok := body["metadata"]; !ok {
		return fault(http.StatusBadRequest, "'metadata' is a required property")
	}
	m := metadataOf(body["metadata"], "'object'")
	v := s.visible(c, c.vars["id"])
	s.refusesReader(c, policy)
	v.metadataFixed("Updating")
	change(v, m)
	v.update()
	return reply{status: http.StatusOK, body: obj{{"metadata", maps.Clone(v.metadata)}}}
}

// metadataFixed refuses a change of the metadata in two statuses (_update_volume_metadata in cinder/volume/api.py).
func (v *volume) metadataFixed(verb string) {
	if v.status == "maintenance" || v.status == "uploading" {
		panic(fault(http.StatusBadRequest, "Invalid volume: "+verb+" volume metadata is not allowed for volumes in "+v.status+" status."))
	}
}

// keyInPath is the metadata key in the path. Cinder takes the end .json or .xml for the format of the answer (APIMapper in cinder/api/openstack).
func keyInPath(c *call) string {
	for _, format := range []string{".json", ".xml"} {
		if key, found := strings.CutSuffix(c.vars["key"], format); found {
			return key
		}
	}
	return c.vars["key"]
}

// item is the volume in the path, which has metadata with the key in the path.
func (s *Sim) item(c *call) *volume {
	v := s.visible(c, c.vars["id"])
	if _, ok := v.metadata[keyInPath(c)]; !ok {
		panic(fault(http.StatusNotFound, "Volume "+v.id+" has no metadata with key "+keyInPath(c)+"."))
	}
	return v
}

func (s *Sim) setMetadataItem(c *call) reply {
	body := c.decode()
	m := metadataOf(body["meta"], "'object'")
	value, ok := m[keyInPath(c)]
	if !ok {
		return fault(http.StatusBadRequest, "Request body and URI mismatch")
	}
	v := s.visible(c, c.vars["id"])
	s.refusesReader(c, "volume:update_volume_metadata")
	v.metadataFixed("Updating")
	v.metadata[keyInPath(c)] = value
	v.update()
	return reply{status: http.StatusOK, body: obj{{"meta", obj{{keyInPath(c), value}}}}}
}

func (s *Sim) deleteMetadataItem(c *call) reply {
	v := s.item(c)
	s.refusesReader(c, "volume:delete_volume_metadata")
	v.metadataFixed("Deleting")
	delete(v.metadata, keyInPath(c))
	v.update()
	return reply{status: http.StatusOK}
}
