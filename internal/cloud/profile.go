package cloud

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// withProfile is an entry over the profile that it names. A profile says where a cloud is: its auth_url, its regions and their
// auth_url, the interface and the domains. Whatever the entry says itself wins over the profile, a region's values included.
func (f *cloudsFiles) withProfile(entry cloudEntry, name, region string) (cloudEntry, error) {
	title := cmp.Or(entry.Profile, entry.Cloud)
	if title == "" {
		return entry, nil
	}
	profile, known := f.public[title]
	if !known {
		if entry.Auth.AuthURL == "" {
			return entry, errorf(ErrMisconfigured, "cloud %s: its profile %q is not in %s, and it has no auth_url of its own", name, title, f.beside(publicFile))
		}
		return entry, nil
	}
	if len(entry.Regions) == 0 {
		profile.RegionName = cmp.Or(region, entry.RegionName, profile.RegionName)
	} else {
		profile.Regions = nil
	}
	refused, err := profile.notAProfiles()
	if err != nil {
		return entry, err
	}
	if len(refused) > 0 {
		return entry, errorf(ErrMisconfigured, "cloud %s: its profile %q in %s sets %s; a profile may only say where a cloud is (auth_url, regions, interface, domains): put it into the entry itself",
			name, title, f.beside(publicFile), strings.Join(refused, ", "))
	}
	if profile, err = profile.inRegion(name, region); err != nil {
		return entry, err
	}
	profile.Regions = nil // its values are applied, below the entry
	return profile.under(entry), nil
}

// notAProfiles lists the keys about a login that a profile must not have: what sends requests elsewhere, weakens TLS or says who
// logs in. Keys of other programs are no concern of ours.
func (e cloudEntry) notAProfiles() ([]string, error) {
	var keys []string
	for _, r := range e.Regions {
		var values cloudEntry
		if r.Values.Kind != 0 {
			if err := r.Values.Decode(&values); err != nil {
				return nil, errorf(ErrBadFile, "profile: region %s: its values are of the wrong type", r.Name)
			}
		}
		below, err := values.notAProfiles()
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
	a.AuthURL, a.UserDomainID, a.UserDomainName, a.ProjectDomainID, a.ProjectDomainName, a.DefaultDomain = "", "", "", "", "", ""
	e.Profile, e.Cloud, e.RegionName, e.Interface, e.EndpointType, e.Regions, e.Other = "", "", "", "", "", nil, nil
	keys = append(keys, keysOf(reflect.ValueOf(e), "")...)
	slices.Sort(keys)
	return keys, nil
}

// keysOf lists the YAML keys of the fields that are set. It walks the fields, so that a new one is refused until it is allowed.
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

// under is e with everything that over says put over it.
func (e cloudEntry) under(over cloudEntry) cloudEntry {
	merged := e
	merged.Other = maps.Clone(e.Other)
	overlay(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(over))
	return merged
}
