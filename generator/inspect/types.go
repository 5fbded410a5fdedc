package inspect

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

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
	found, err := pages(func(query string) ([]apiType, bool, error) {
		var body struct {
			Types cloud.Items[apiType] `json:"volume_types"`
			Links cloud.Items[link]    `json:"volume_type_links"`
		}
		err := a.get(ctx, blockStorage, "", "types"+query, &body)
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
		state, reason := classify(err)
		return v1alpha1.Fact[[]v1alpha1.VolumeType]{State: state, Reason: "versions of " + blockStorage + ": " + reason}
	}
	if !shown {
		for i := range types {
			types[i].Specs = v1alpha1.Unsupported
		}
	} else if failed := a.specs(ctx, found, types); failed != nil {
		return factOf[[]v1alpha1.VolumeType](nil, failed)
	}
	slices.SortFunc(types, func(a, b v1alpha1.VolumeType) int { return strings.Compare(a.Name, b.Name) })
	a.encryption(ctx, types)
	return factOf(types, nil)
}

// showsSpecs is whether this Cinder shows extra specs to members. Before Xena only administrators saw any, and nobody's are looked
// at then. A Cinder that does not tell its versions for good (an access rule forbids it) is taken for a newer one: members of an
// older one are denied the specs anyway.
func (a *asker) showsSpecs(ctx context.Context) (bool, error) {
	_, highest, err := a.microversions(ctx, blockStorage)
	if err != nil {
		if state, _ := classify(err); state == v1alpha1.Failed {
			return false, err
		}
		return true, nil
	}
	return !older(highest, xena), nil
}

// older compares microversions, "3.9" < "3.66"; a Cinder without any is older than every one.
func older(have, than string) bool {
	major, minor, err := utils.ParseMicroversion(have)
	if err != nil {
		return true
	}
	thanMajor, thanMinor, _ := utils.ParseMicroversion(than)
	return major < thanMajor || major == thanMajor && minor < thanMinor
}

// specs fills in what the extra specs say. Cinder leaves them out of its list for who has the role member without the role reader,
// as an application credential made for members alone (seen on Cinder 21.3), but tells them of each type when asked.
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
				if err := a.get(ctx, blockStorage, "", "types/"+url.PathEscape(t.ID)+"/extra_specs", &body); err != nil {
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

// encryption asks for each type's encryption. The first answer tells whether this user may ask at all: a policy does not know
// types, so one refusal is every type's.
func (a *asker) encryption(ctx context.Context, types []v1alpha1.VolumeType) {
	if len(types) == 0 {
		return
	}
	types[0].Encryption = a.encryptionOf(ctx, types[0].ID)
	if first := types[0].Encryption; first.State == v1alpha1.Denied {
		for i := range types {
			types[i].Encryption = first
		}
		return
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := 1; i < len(types); i++ {
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
	err := a.get(ctx, blockStorage, "", "types/"+url.PathEscape(typeID)+"/encryption", &body)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return factOf(v1alpha1.Encryption{}, nil) // the type is not encrypted, or older Cinders' way of saying so
	}
	return factOf(v1alpha1.Encryption{Provider: body.Provider, Cipher: body.Cipher, Location: body.Location}, err)
}
