package inspect

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// groupTypesMicroversion is where Cinder's group types begin.
const groupTypesMicroversion = "3.11"

// services are the catalog's, and the microversions of the two that matter.
func (a *asker) services(ctx context.Context) v1alpha1.Fact[map[string]v1alpha1.Service] {
	services := map[string]v1alpha1.Service{}
	for _, e := range a.cloud.Catalog() {
		name := canonical(e.Type)
		if _, twice := services[name]; twice {
			continue
		}
		bare, port := endpoint(e.URL, a.cloud.ProjectID())
		services[name] = v1alpha1.Service{Present: true, Endpoint: bare, Port: port}
	}
	for _, name := range []string{compute, blockStorage} {
		service, listed := services[name]
		if !listed {
			services[name] = v1alpha1.Service{}
			continue
		}
		lowest, highest, err := a.microversions(ctx, name)
		if err != nil {
			state, reason := classify(err)
			return v1alpha1.Fact[map[string]v1alpha1.Service]{State: state, Reason: "versions of " + name + ": " + reason, Value: services}
		}
		service.MinMicroversion, service.MaxMicroversion = lowest, highest
		services[name] = service
	}
	return factOf(services, nil)
}

// microversions reads a service's version document: of one version (Nova) or a list of one (Cinder).
func (a *asker) microversions(ctx context.Context, service string) (lowest, highest string, err error) {
	client, err := a.cloud.ClientContext(ctx, service, "")
	if err != nil {
		return "", "", err
	}
	type version struct {
		ID      string `json:"id"`
		Version string `json:"version"`
		Min     string `json:"min_version"`
	}
	var document struct {
		Version  version              `json:"version"`
		Versions cloud.Items[version] `json:"versions"`
	}
	root, _ := endpoint(client.Endpoint, a.cloud.ProjectID())
	if err := a.fetch(ctx, client, root+"/", &document); err != nil {
		return "", "", err
	}
	wanted := root[strings.LastIndexByte(root, '/')+1:] // "v3", "v2.1"
	for _, v := range append(document.Versions, document.Version) {
		if strings.TrimSuffix(v.ID, ".0") == wanted {
			return v.Min, v.Version, nil
		}
	}
	return "", "", nil // a version without microversions
}

func (a *asker) zones(ctx context.Context, service string) v1alpha1.Fact[[]v1alpha1.Zone] {
	var body struct {
		Zones cloud.Items[struct {
			Name  string `json:"zoneName"`
			State struct {
				Available bool `json:"available"`
			} `json:"zoneState"`
		}] `json:"availabilityZoneInfo"`
	}
	err := a.get(ctx, service, "", "os-availability-zone", &body)
	zones := []v1alpha1.Zone{}
	for _, z := range body.Zones {
		zones = append(zones, v1alpha1.Zone{Name: z.Name, Available: z.State.Available})
	}
	slices.SortFunc(zones, func(a, b v1alpha1.Zone) int { return strings.Compare(a.Name, b.Name) })
	return factOf(zones, err)
}

// defaultType is the type of volumes for which nobody names one; 404 means that there is none.
func (a *asker) defaultType(ctx context.Context) v1alpha1.Fact[string] {
	var body struct {
		Type struct {
			Name string `json:"name"`
		} `json:"volume_type"`
	}
	err := a.get(ctx, blockStorage, "", "types/default", &body)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return v1alpha1.Fact[string]{State: v1alpha1.Unsupported, Reason: "the cloud has no default volume type"}
	}
	return factOf(body.Type.Name, err)
}

func (a *asker) limits(ctx context.Context) v1alpha1.Fact[v1alpha1.Limits] {
	var body struct {
		Limits struct {
			Absolute struct {
				Volumes         int `json:"maxTotalVolumes"`
				Gigabytes       int `json:"maxTotalVolumeGigabytes"`
				Snapshots       int `json:"maxTotalSnapshots"`
				Backups         int `json:"maxTotalBackups"`
				BackupGigabytes int `json:"maxTotalBackupGigabytes"`
			} `json:"absolute"`
		} `json:"limits"`
	}
	err := a.get(ctx, blockStorage, "", "limits", &body)
	return factOf(v1alpha1.Limits(body.Limits.Absolute), err)
}

func (a *asker) quota(ctx context.Context) v1alpha1.Fact[map[string]v1alpha1.Quota] {
	var body struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	err := a.get(ctx, blockStorage, "", "os-quota-sets/"+url.PathEscape(a.cloud.ProjectID())+"?usage=true", &body)
	quota := map[string]v1alpha1.Quota{}
	for name, text := range body.Set {
		var use struct {
			Limit int `json:"limit"`
			InUse int `json:"in_use"`
		}
		if json.Unmarshal(text, &use) == nil { // "id" is a string among the objects
			quota[name] = v1alpha1.Quota(use)
		}
	}
	return factOf(quota, err)
}

func (a *asker) groupTypes(ctx context.Context) v1alpha1.Fact[[]string] {
	type groupType struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	found, err := pages(func(marker string) ([]groupType, bool, error) {
		var body struct {
			Types cloud.Items[groupType] `json:"group_types"`
			Links cloud.Items[link]      `json:"group_type_links"`
		}
		err := a.get(ctx, blockStorage, groupTypesMicroversion, "group_types"+marker, &body)
		return body.Types, more(body.Links), err
	}, func(t groupType) string { return t.ID })
	names := map[string]bool{}
	for _, t := range found {
		names[t.Name] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	if sorted == nil {
		sorted = []string{}
	}
	return factOf(sorted, err)
}

// link is an entry of <collection>_links.
type link struct {
	Rel string `json:"rel"`
}

func more(links []link) bool {
	return slices.ContainsFunc(links, func(l link) bool { return l.Rel == "next" })
}

// maxTypes is how many types, or group types, a project can have: each costs two requests.
const maxTypes = 1000

// pages walks a collection by markers. Links are not followed: behind a proxy they often name the cloud's inside, and a hostile
// cloud's would take the token elsewhere.
func pages[T any](page func(query string) ([]T, bool, error), id func(T) string) ([]T, error) {
	return paging.All(maxTypes, func(marker string) ([]T, bool, error) {
		if marker == "" {
			return page("")
		}
		return page("?marker=" + url.QueryEscape(marker))
	}, id)
}
