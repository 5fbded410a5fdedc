package openstack

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// links is an entry <collection>_links of an answer; there is one where a further page is. Where it leads to is not read: the next
// page is asked for by marker, at the endpoint that the catalog names.
type links cloud.Items[struct {
	Rel string `json:"rel"`
}]

// UnmarshalJSON implements json.Unmarshaler.
func (l *links) UnmarshalJSON(data []byte) error {
	return (*cloud.Items[struct {
		Rel string `json:"rel"`
	}])(l).UnmarshalJSON(data)
}

// mostNamed is how many objects of one name are kept. Names of volumes are not unique in Cinder, but more than a few of one are a
// mistake, and a hostile cloud would have the driver keep its whole list.
const mostNamed = 16

// allNamed reads every object of exactly that name, page by page. Names are compared here once more: the database behind Cinder may
// ignore their case, and a Cinder without the filter lists everything.
func allNamed[T any](name string, list func(query url.Values) ([]T, bool, error), of func(T) (id, name string)) ([]T, error) {
	var found []T
	query := url.Values{"name": {name}}
	err := paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		if marker != "" {
			query.Set("marker", marker)
		}
		return list(query)
	}, func(object T) string { id, _ := of(object); return id }, func(page []T) bool {
		for _, object := range page {
			if _, its := of(object); its == name {
				found = append(found, object)
			}
		}
		return len(found) <= mostNamed
	})
	switch {
	case err != nil:
		return nil, endless(err, "find by name", "objects named "+strconv.Quote(name))
	case len(found) > mostNamed:
		return nil, volume.Errorf(volume.Unavailable, "Cinder lists more than %d objects named %q; delete or rename those that are not needed", mostNamed, name).Op("find by name")
	}
	return found, nil
}

func snapshotIDAndName(p volume.Snapshot) (id, name string) { return string(p.ID), p.Name }

// pageOf is one page of a list: at most as many objects as were asked for, whatever the cloud gives. Errors: Unavailable for an object
// without a proper id, and for a page that ends with its own marker, since whoever goes on from there never comes to an end.
func pageOf[W, T any](query url.Values, wire []W, domain func(W) (object T, id string), more bool, verb string) ([]T, bool, error) {
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 && len(wire) > limit {
		wire, more = wire[:limit], true
	}
	page, last := make([]T, len(wire)), ""
	for i, w := range wire {
		if page[i], last = domain(w); !isUUID(last) {
			return nil, false, volume.Errorf(volume.Unavailable, "Cinder lists an object whose id is %.64q, which is no UUID; the list is not used", last).Op(verb)
		}
	}
	if last != "" && last == query.Get("marker") {
		return nil, false, endless(fmt.Errorf("%w: a page ends with the item after which it should begin", paging.ErrEndless), verb, "the page after "+last)
	}
	return page, more, nil
}

// endless turns the error of a list that does not end into one that a retry may find repaired; other errors stay as they are.
func endless(err error, verb, object string) error {
	if !errors.Is(err, paging.ErrEndless) {
		return err
	}
	return volume.Errorf(volume.Unavailable, "%s: %w; Cinder, or a proxy before it, is broken: tell the administrator of the cloud", object, err).Op(verb)
}
