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

// links is the entry <collection>_links of an answer, which is there if a further page exists. The driver does not follow the link: it asks
// for the next page by marker, at the endpoint in the catalog.
type links cloud.Items[struct {
	Rel string `json:"rel"`
}]

// UnmarshalJSON implements json.Unmarshaler.
func (l *links) UnmarshalJSON(data []byte) error {
	return (*cloud.Items[struct {
		Rel string `json:"rel"`
	}])(l).UnmarshalJSON(data)
}

// maxNamed is how many objects with one name the driver accepts. Names are not unique in Cinder, but more than a few objects with one name
// are a mistake. The driver must not keep an endless list in memory.
const maxNamed = 16

// allNamed reads every object with exactly that name, page by page. It compares the names again: the database behind Cinder may ignore their
// case, and an old Cinder without the filter lists everything.
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
		return len(found) <= maxNamed
	})
	switch {
	case err != nil:
		return nil, endless(err, "find by name", "objects named "+strconv.Quote(name))
	case len(found) > maxNamed:
		return nil, volume.Errorf(volume.Unavailable, "Cinder lists more than %d objects named %q; delete or rename those that nobody needs", maxNamed, name).Op("find by name")
	}
	return found, nil
}

func snapshotIDAndName(p volume.Snapshot) (id, name string) { return string(p.ID), p.Name }

// pageOf converts one page of a list. It keeps at most as many objects as the query's limit, even if the cloud sends more. Errors: Unavailable
// for an id that is not a UUID, and for a page that ends with its own marker. The driver would read such a page for ever.
func pageOf[W, T any](query url.Values, wire []W, domain func(W) (object T, id string), more bool, verb string) ([]T, bool, error) {
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 && len(wire) > limit {
		wire, more = wire[:limit], true
	}
	page, last := make([]T, len(wire)), ""
	for i, w := range wire {
		if page[i], last = domain(w); !isUUID(last) {
			return nil, false, volume.Errorf(volume.Unavailable, "Cinder lists an object with the id %.64q, which is not a UUID; the driver ignores the list", last).Op(verb)
		}
	}
	if last != "" && last == query.Get("marker") {
		return nil, false, endless(fmt.Errorf("%w: a page ends with the item that it should follow", paging.ErrEndless), verb, "the page after "+last)
	}
	return page, more, nil
}

// endless makes the error of a list without an end retryable: somebody may repair Cinder. It leaves other errors as they are.
func endless(err error, verb, object string) error {
	if !errors.Is(err, paging.ErrEndless) {
		return err
	}
	return volume.Errorf(volume.Unavailable, "%s: %w; Cinder, or a proxy before it, has a defect: report it to the administrator of the cloud", object, err).Op(verb)
}
