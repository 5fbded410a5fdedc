package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// groupTypesMicroversion is where Cinder's group types begin.
const groupTypesMicroversion = "3.11"

// services are those of the catalog, which came with the login, and the microversions of two of them. These are two facts more.
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
	asked := []string{compute, blockStorage}
	found, failed := make([]versions, len(asked)), make([]error, len(asked))
	var group sync.WaitGroup
	for i, name := range asked {
		if _, listed := services[name]; listed {
			group.Go(func() { found[i], failed[i] = a.microversions(ctx, name) })
		}
	}
	group.Wait()
	for i, name := range asked {
		service, listed := services[name]
		if !listed {
			continue
		}
		service.MinMicroversion, service.MaxMicroversion = found[i].lowest, found[i].highest
		if failed[i] != nil {
			service.Versions, service.Reason = classify(failed[i])
		}
		services[name] = service
	}
	return factOf(services, nil)
}

// versions are the microversions of a service; empty for a version without any.
type versions struct{ lowest, highest string }

// microversions reads the versions of a service, once for all collectors.
func (a *asker) microversions(ctx context.Context, service string) (versions, error) {
	a.lock.Lock()
	shared := a.versions[service]
	if shared != nil {
		a.lock.Unlock()
		select {
		case <-shared.done:
			return shared.found, shared.err
		case <-ctx.Done():
			return versions{}, ctx.Err()
		}
	}
	shared = &sharedVersions{done: make(chan struct{})}
	a.versions[service] = shared
	a.lock.Unlock()
	defer close(shared.done)
	shared.found, shared.err = a.readVersions(ctx, service)
	return shared.found, shared.err
}

// sharedVersions are the versions of a service once done is closed.
type sharedVersions struct {
	done  chan struct{}
	found versions
	err   error
}

// readVersions reads the version document of a service: one version (Nova) or a list of one (Cinder).
func (a *asker) readVersions(ctx context.Context, service string) (versions, error) {
	client, err := a.cloud.ClientContext(ctx, service, "")
	if err != nil {
		return versions{}, err
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
	if err := a.fetch(ctx, client, root+"/", "", &document); err != nil {
		return versions{}, err
	}
	wanted := root[strings.LastIndexByte(root, '/')+1:] // "v3", "v2.1"
	for _, v := range append(document.Versions, document.Version) {
		if strings.TrimSuffix(v.ID, ".0") == wanted {
			return versions{v.Min, v.Version}, nil
		}
	}
	return versions{}, &requestError{client.Type, cloud.PlainURL(root + "/"), fmt.Errorf("the answer has no version %s", wanted)}
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
	err := a.get(ctx, service, "", "os-availability-zone", "availabilityZoneInfo", &body)
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
	err := a.get(ctx, blockStorage, "", "types/default", "volume_type", &body)
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
	err := a.get(ctx, blockStorage, "", "limits", "limits", &body)
	return factOf(v1alpha1.Limits(body.Limits.Absolute), err)
}

func (a *asker) quota(ctx context.Context) v1alpha1.Fact[map[string]v1alpha1.Quota] {
	var body struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	err := a.get(ctx, blockStorage, "", "os-quota-sets/"+url.PathEscape(a.cloud.ProjectID())+"?usage=true", "quota_set", &body)
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
		err := a.get(ctx, blockStorage, groupTypesMicroversion, "group_types"+marker, "group_types", &body)
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

// maxTypes is how many types, or group types, a project can have: each can cost two requests.
const maxTypes = 2500

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

// backup asks for the project's backups, and for the services, which members are denied. It does not ask whether a backup would
// work: only a POST could tell.
func (a *asker) backup(ctx context.Context) v1alpha1.Fact[v1alpha1.Backup] {
	var service v1alpha1.Fact[string]
	var group sync.WaitGroup
	group.Go(func() { service = a.backupService(ctx) })
	var body struct {
		Backups cloud.Items[struct {
			ID string `json:"id"`
		}] `json:"backups"`
	}
	err := a.get(ctx, blockStorage, "", "backups?limit=1&status=available", "backups", &body)
	group.Wait()
	return factOf(v1alpha1.Backup{Made: len(body.Backups) > 0, Service: service}, err)
}

// backupService is the state of cinder-backup: up if one of its processes is enabled and up.
func (a *asker) backupService(ctx context.Context) v1alpha1.Fact[string] {
	var body struct {
		Services cloud.Items[struct {
			Binary string `json:"binary"`
			Status string `json:"status"`
			State  string `json:"state"`
		}] `json:"services"`
	}
	err := a.get(ctx, blockStorage, "", "os-services?binary=cinder-backup", "services", &body)
	service := "absent"
	for _, s := range body.Services {
		switch {
		case s.Binary != "cinder-backup":
		case s.Status == "enabled" && s.State == "up":
			return factOf("up", err)
		default:
			service = "down"
		}
	}
	return factOf(service, err)
}
