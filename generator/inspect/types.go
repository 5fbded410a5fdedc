package inspect

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"
	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// The extra specs that Cinder shows to everybody from Xena on (Cinder's administration guide, "User visible extra specs").
// Administrators are shown all of a type's; the others are never looked at.
const (
	specMultiattach = "multiattach"
	specReplication = "replication_enabled"
	specZones       = "RESKEY:availability_zones"
)

// xena is the highest microversion of the first Cinder that shows extra specs to everybody; Wallaby's is 3.64 (Cinder's REST API
// microversion history).
const xena = "3.66"

// apiType is a volume type as Cinder answers.
type apiType struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Public      bool              `json:"is_public"`
	ExtraSpecs  map[string]string `json:"extra_specs"` // nil where the list left them out
}

// volumeTypes lists the types a member of the project may use. Without is_public=None an administrator is shown public types and
// the project's private ones, the same as everybody.
func (a *asker) volumeTypes(ctx context.Context) v1alpha1.Fact[[]v1alpha1.VolumeType] {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { _, _ = a.microversions(ctx, blockStorage) }) // showsSpecs needs them after the list
	var encryption v1alpha1.Fact[v1alpha1.Encryption]
	asked := make(chan struct{})
	group.Go(func() {
		defer close(asked)
		encryption = a.encryptionOf(ctx, noType)
	})
	found, err := pages(func(query string) ([]apiType, bool, error) {
		var body struct {
			Types cloud.Items[apiType] `json:"volume_types"`
			Links cloud.Items[link]    `json:"volume_type_links"`
		}
		err := a.get(ctx, blockStorage, "", "types"+query, "volume_types", &body)
		return body.Types, more(body.Links), err
	}, func(t apiType) string { return t.ID })
	if err != nil {
		return factOf[[]v1alpha1.VolumeType](nil, err)
	}
	types := make([]v1alpha1.VolumeType, len(found))
	for i, t := range found {
		types[i] = v1alpha1.VolumeType{ID: t.ID, Name: t.Name, Public: t.Public, Description: t.Description}
	}
	shown, err := a.showsSpecs(ctx)
	if err != nil {
		return factOf[[]v1alpha1.VolumeType](nil, err)
	}
	if !shown {
		for i := range types {
			types[i].Specs = v1alpha1.Unsupported
		}
	} else if failed := a.specs(ctx, found, types); failed != nil {
		return factOf[[]v1alpha1.VolumeType](nil, failed)
	}
	slices.SortFunc(types, func(a, b v1alpha1.VolumeType) int { return strings.Compare(a.Name, b.Name) })
	<-asked
	a.encryption(ctx, types, encryption)
	return factOf(types, nil)
}

// showsSpecs is whether this Cinder shows extra specs to members. Before Xena only administrators saw any, and nobody's are looked
// at then. Where an access rule forbids the versions, Cinder is taken for a newer one: an older one denies
// the specs to members anyway.
func (a *asker) showsSpecs(ctx context.Context) (bool, error) {
	found, err := a.microversions(ctx, blockStorage)
	if err != nil {
		if state, _ := classify(err); state == v1alpha1.Failed {
			return false, err
		}
		return true, nil
	}
	return AtLeast(found.highest, xena), nil
}

// AtLeast compares microversions: "3.9" is below "3.66". Text that is not a microversion is below every one.
func AtLeast(have, want string) bool {
	major, minor, err := utils.ParseMicroversion(have)
	if err != nil {
		return false
	}
	wantMajor, wantMinor, _ := utils.ParseMicroversion(want)
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

// specs fills in what the extra specs say. Cinder 21.3 leaves them out of its list if the user has the role member but not reader.
// An application credential for the role member is such a user. In the answer for one type, Cinder does show them.
func (a *asker) specs(ctx context.Context, found []apiType, types []v1alpha1.VolumeType) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, t := range found {
		group.Go(func() error {
			specs, state := t.ExtraSpecs, v1alpha1.Known
			if specs == nil {
				var body struct {
					Specs map[string]string `json:"extra_specs"`
				}
				if err := a.get(ctx, blockStorage, "", "types/"+url.PathEscape(t.ID)+"/extra_specs", "extra_specs", &body); err != nil {
					if state, _ = classify(err); state == v1alpha1.Failed {
						return err
					}
				}
				specs = body.Specs
			}
			types[i].Multiattach, types[i].Replication = is(specs[specMultiattach]), is(specs[specReplication])
			types[i].Zones = zoneList(specs[specZones])
			if state != v1alpha1.Known {
				types[i].Specs = state
			}
			return nil
		})
	}
	return group.Wait()
}

// is reads the boolean form of extra specs, "<is> True".
func is(spec string) bool {
	value, ok := strings.CutPrefix(strings.TrimSpace(spec), "<is>")
	return ok && strings.EqualFold(strings.TrimSpace(value), "true")
}

// zoneList reads a comma-separated list, as Cinder's availability zone filter does.
func zoneList(spec string) []string {
	var zones []string
	for z := range strings.SplitSeq(spec, ",") {
		if z = strings.TrimSpace(z); z != "" {
			zones = append(zones, z)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// noType is the ID of no volume type. Cinder checks the policy before it looks for the type. So the answer for this ID says whether the
// user may ask for encryption at all, while the types are still being listed.
const noType = "00000000-0000-4000-8000-000000000000"

// encryption fills in the encryption of each type. forAny is the answer for noType. A policy does not depend on the type, so one refusal
// holds for all of them. An outage is taken for all of them too, because no decision needs these facts.
func (a *asker) encryption(ctx context.Context, types []v1alpha1.VolumeType, forAny v1alpha1.Fact[v1alpha1.Encryption]) {
	if forAny.State != v1alpha1.Known {
		for i := range types {
			types[i].Encryption = forAny
		}
		return
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range types {
		group.Go(func() error {
			types[i].Encryption = a.encryptionOf(ctx, types[i].ID)
			return nil
		})
	}
	_ = group.Wait()
}

func (a *asker) encryptionOf(ctx context.Context, typeID string) v1alpha1.Fact[v1alpha1.Encryption] {
	var body struct {
		Provider string `json:"provider"`
		Cipher   string `json:"cipher"`
		Location string `json:"control_location"`
	}
	err := a.get(ctx, blockStorage, "", "types/"+url.PathEscape(typeID)+"/encryption", "", &body)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return factOf(v1alpha1.Encryption{}, nil) // the type is not encrypted, or older Cinders' way of saying so
	}
	return factOf(v1alpha1.Encryption{Provider: body.Provider, Cipher: body.Cipher, Location: body.Location}, err)
}
