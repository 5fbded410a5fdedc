package cloud

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// withProfile puts an entry over the profile that it names. A profile says where a cloud is: its auth_url, its regions and their
// auth_url, the interface and the domains. Values of the entry win over the profile, and over the values of its regions.
func (f *cloudsFiles) withProfile(entry cloudEntry, name, region string) (cloudEntry, error) {
	title := cmp.Or(entry.Profile, entry.Cloud)
	if title == "" {
		return entry, nil
	}
	profile, known := f.public[title]
	if !known {
		if entry.Auth.AuthURL == "" {
			return entry, errorf(ErrMisconfigured, "cloud %s: its profile %q is not in %s, and the entry has no auth_url", name, title, f.beside(publicFile))
		}
		return entry, nil
	}
	if len(entry.Regions) == 0 {
		profile.RegionName = cmp.Or(region, entry.RegionName, profile.RegionName)
	} else {
		profile.Regions = nil
	}
	refused, err := profile.forbiddenKeys()
	if err != nil {
		return entry, err
	}
	if len(refused) > 0 {
		return entry, errorf(ErrMisconfigured, "cloud %s: its profile %q in %s sets %s; set that in the entry itself. A profile may only have auth_url, regions, interface and domains",
			name, title, f.beside(publicFile), strings.Join(refused, ", "))
	}
	if profile, err = profile.inRegion(name, region); err != nil {
		return entry, err
	}
	profile.Regions = nil // inRegion applied the values of the region
	return profile.under(entry), nil
}

// forbiddenKeys lists the keys that a profile must not have: they send requests elsewhere, weaken TLS or hold credentials. Keys
// of other programs do not matter here.
func (e cloudEntry) forbiddenKeys() ([]string, error) {
	var keys []string
	for _, r := range e.Regions {
		var values cloudEntry
		if r.Values.Kind != 0 {
			if err := r.Values.Decode(&values); err != nil {
				return nil, errorf(ErrBadFile, "profile: region %s: its values are of the wrong type", r.Name)
			}
		}
		below, err := values.forbiddenKeys()
		if err != nil {
			return nil, err
		}
		for _, key := range below {
			keys = append(keys, "regions["+r.Name+"]."+key)
		}
	}
	for key := range e.Other {
		if strings.HasSuffix(key, "_endpoint_override") {
			keys = append(keys, key)
		}
	}
	if e.Verify != nil && *e.Verify {
		e.Verify = nil
	}
	if e.Insecure != nil && !*e.Insecure {
		e.Insecure = nil
	}
	a := &e.Auth
	a.AuthURL, a.UserDomainID, a.UserDomainName, a.ProjectDomainID, a.ProjectDomainName, a.DefaultDomain, a.Other = "", "", "", "", "", "", nil
	e.Profile, e.Cloud, e.RegionName, e.Interface, e.EndpointType, e.Regions, e.Other = "", "", "", "", "", nil, nil
	keys = append(keys, keysOf(reflect.ValueOf(e), "")...)
	slices.Sort(keys)
	return keys, nil
}

// keysOf lists the YAML keys of the fields that are set. It walks the fields, so a new field is refused until somebody allows it.
func keysOf(v reflect.Value, prefix string) []string {
	var keys []string
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		switch field := v.Field(i); {
		case field.IsZero():
		case field.Kind() == reflect.Struct:
			keys = append(keys, keysOf(field, prefix+key+".")...)
		default:
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

// under returns e with every value that over sets.
func (e cloudEntry) under(over cloudEntry) cloudEntry {
	merged := e
	merged.Other, merged.Auth.Other = maps.Clone(e.Other), maps.Clone(e.Auth.Other)
	overlay(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(over))
	return merged
}
