package openstacksim

import "slices"

// catalog lists the simulated services with their endpoints, sorted by type.
func (s *Sim) catalog(c *call, project string) []obj {
	volume, nova, keystone := c.base(blocks)+"/v3/"+project, c.base(compute)+"/v2.1", c.base(identity)+"/v3/"
	if s.config.UnversionedEndpoints {
		volume, nova, keystone = c.base(blocks), c.base(compute), c.base(identity)
	}
	entries := []struct{ kind, name, url string }{
		{"block-storage", "cinder", volume},
		{"compute", "nova", nova},
		{"identity", "keystone", keystone},
		{"volumev3", "cinderv3", volume},
	}
	var catalog []obj
	for _, e := range entries {
		if slices.Contains(s.config.MissingServices, e.kind) || e.kind == "volumev3" && slices.Contains(s.config.MissingServices, "block-storage") {
			continue
		}
		var endpoints []obj
		for _, face := range []string{"admin", "internal", "public"} {
			endpoints = append(endpoints, obj{
				{"id", FixedHex("endpoint", e.kind+"/"+face)},
				{"interface", face},
				{"region_id", s.config.Region},
				{"url", e.url},
				{"region", s.config.Region},
			})
		}
		catalog = append(catalog, obj{{"endpoints", endpoints}, {"id", FixedHex("service", e.kind)}, {"type", e.kind}, {"name", e.name}})
	}
	return catalog
}
