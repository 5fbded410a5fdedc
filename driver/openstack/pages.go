package openstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// links is the entry <collection>_links of an answer, which is there if a further page exists. The driver does not follow the link: it asks
// for the next page by marker, at the endpoint in the catalog.
type links = cloud.Items[struct {
	Rel string `json:"rel"`
}]

// maxNamed is how many objects with one name the driver accepts. Names are not unique in Cinder, but more than a few objects with one name
// are a mistake. The driver must not keep an endless list in memory.
const maxNamed = 16

// pageLimit is the page size of every list without a smaller one: Cinder's default osapi_max_limit. With more, an answer could exceed the limits
// of package cloud.
const pageLimit = 1000

func limited(query url.Values) url.Values {
	query = maps.Clone(query)
	if query.Get("limit") == "" {
		query.Set("limit", strconv.Itoa(pageLimit))
	}
	return query
}

// pageQuery is the query for at most limit objects after a marker; limit 0 is the usual page.
func pageQuery(marker string, limit int, verb string) (url.Values, error) {
	query := url.Values{}
	if marker != "" {
		if !contract.IsUUID(marker) {
			return nil, volume.Errorf(volume.NotFound, "marker %q does not exist: it is not a UUID", marker).Op(verb)
		}
		query.Set("marker", marker)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query, nil
}

// list is one of Cinder's lists: of volumes, snapshots or backups.
type list[T any] struct {
	cloud    *Cloud
	call     cloud.Call
	noun     string // "volume"
	id, name func(T) string
	brief    func(T) T                                                             // what an RPC keeps of an object that it finds by name
	send     func(ctx context.Context, r request) (page []T, more bool, err error) // sends the request and decodes the answer
}

// page reads one page. It keeps at most as many objects as it asks for, even if the cloud sends more. Errors: Unavailable for an id that is
// not a UUID, and for a page that ends with its own marker. The driver would read such a page for ever.
func (l list[T]) page(ctx context.Context, query url.Values) ([]T, bool, error) {
	query = limited(query)
	r := request{call: l.call, verb: "list " + l.noun + "s", object: "the project's " + l.noun + "s", query: query, ok: http.StatusOK}
	// A marker names an object that may be gone, and a cloud without backups may answer 404.
	r.exists = query.Get("marker") == "" && l.call != listBackups
	if name := query.Get("name"); name != "" {
		r.verb, r.object = "find "+l.noun+" by name", l.noun+"s named "+strconv.Quote(name)
	}
	page, more, err := l.send(ctx, r)
	for limit, _ := strconv.Atoi(query.Get("limit")); errors.Is(err, cloud.ErrTooLarge) && limit > cloud.SmallestPage; { // large objects are no reason to have no list
		limit /= 4
		query.Set("limit", strconv.Itoa(limit))
		page, more, err = l.send(ctx, r)
	}
	if err != nil {
		return nil, false, err
	}
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 && len(page) > limit {
		page, more = page[:limit], true
	}
	last := ""
	for _, object := range page {
		if last = l.id(object); !contract.IsUUID(last) {
			return nil, false, volume.Errorf(volume.Unavailable, "Cinder lists an object with the id %.64q, which is not a UUID; the driver ignores the list", last).Cause(cause.CloudAnswer).Op(r.verb)
		}
	}
	if last != "" && last == query.Get("marker") {
		return nil, false, endless(fmt.Errorf("%w: a page ends with the item that it should follow", paging.ErrEndless), r.verb, "the page after "+last)
	}
	return page, more, nil
}

func converted[W, T any](wire []W, domain func(W) T) []T {
	objects := make([]T, len(wire))
	for i, w := range wire {
		objects[i] = domain(w)
	}
	return objects
}

// named reads every object with exactly that name, page by page. It compares the names again: the database behind Cinder may ignore their
// case, and an old Cinder without the filter lists everything.
func (l list[T]) named(ctx context.Context, name string) ([]T, error) {
	verb := "find " + l.noun + " by name"
	if name == "" {
		return nil, volume.Errorf(volume.InvalidArgument, "the name is empty; the driver does not list all %ss", l.noun).Op(verb)
	}
	var found []T
	query := url.Values{"name": {name}}
	other := func(object T) bool { return l.name(object) != name }
	err := paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		if marker != "" {
			query.Set("marker", marker)
		}
		page, more, err := l.filtered(ctx, query, "name", other)
		return page, more, volume.ListChanged(err, marker)
	}, l.id, func(page []T) bool {
		for _, object := range slices.DeleteFunc(page, other) {
			found = append(found, l.brief(object))
		}
		return len(found) <= maxNamed
	})
	switch {
	case err != nil:
		return nil, endless(err, verb, "objects named "+strconv.Quote(name))
	case len(found) > maxNamed:
		return nil, volume.Errorf(volume.Unavailable, "Cinder lists more than %d objects named %q; delete or rename those that nobody needs", maxNamed, name).Cause(cause.CreateNameTaken).Op(verb)
	}
	return found, nil
}

// endless makes the error of a list without an end retryable: somebody may repair Cinder. It leaves other errors as they are.
func endless(err error, verb, object string) error {
	if !errors.Is(err, paging.ErrEndless) {
		return err
	}
	return volume.Errorf(volume.Unavailable, "%s: %w; Cinder, or a proxy before it, has a defect: report it to the administrator of the cloud", object, err).Cause(cause.CloudAnswer).Op(verb)
}
