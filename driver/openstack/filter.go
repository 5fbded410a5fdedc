package openstack

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// filters are the filters that a cloud refuses: an administrator decides which ones Cinder has (resource_filters.json), and an old Cinder
// lacks some. The driver tries such a filter again after filterPause, and after a new login.
type filters struct {
	mu      sync.Mutex // never held during a call
	login   *cloud.Cloud
	refused map[string]time.Time // until when, by list and filter: "/volumes/detail?name"
}

const filterPause = time.Hour

func (f *filters) isRefused(login *cloud.Cloud, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.login == login && time.Now().Before(f.refused[name])
}

func (f *filters) refuse(login *cloud.Cloud, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.login != login {
		f.login, f.refused = login, map[string]time.Time{}
	}
	f.refused[name] = time.Now().Add(filterPause)
}

// filterRefused reports whether an answer may mean that the cloud does not have a filter. Cinder answers 400 for a filter that is not in
// resource_filters.json. 405, 406 and 501 are for a microversion or a method, and 404 is for a path. Whether the same list without the filter
// works tells the filter from the list.
func filterRefused(err error) bool {
	var status httpStatus
	return errors.As(err, &status) && slices.Contains([]httpStatus{
		http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented,
	}, status)
}

// filtered reads one page of a list with a filter, which is a key in the query; empty for none. The cloud may refuse the filter, but answer
// without it. Then the page has everything, except what other selects, and it is the first page with something left.
func (l list[T]) filtered(ctx context.Context, query url.Values, filter string, other func(T) bool) ([]T, bool, error) {
	if filter == "" {
		return l.page(ctx, query)
	}
	login, err := l.cloud.current(ctx)
	if err != nil {
		return l.page(ctx, query) // which returns the error
	}
	name := l.call.Path + "?" + filter
	if l.cloud.filters.isRefused(login, name) {
		return l.unfiltered(ctx, query, filter, other)
	}
	page, more, err := l.page(ctx, query)
	if !filterRefused(err) || query.Get("marker") != "" {
		return page, more, err
	}
	all, more, failure := l.unfiltered(ctx, query, filter, other)
	if failure != nil {
		return nil, false, err
	}
	l.cloud.filters.refuse(login, name)
	l.cloud.log.WarnContext(ctx, "Cinder refuses a filter; for an hour the driver lists everything instead, with more and longer answers", "filter", name, "error", err)
	return all, more, nil
}

func (l list[T]) unfiltered(ctx context.Context, query url.Values, filter string, other func(T) bool) (found []T, more bool, err error) {
	query = maps.Clone(query)
	query.Del(filter)
	err = paging.Walk(paging.MaxItems, func(marker string) (page []T, _ bool, err error) {
		if marker != "" {
			query.Set("marker", marker)
		}
		page, more, err = l.page(ctx, query)
		return page, more, volume.ListChanged(err, marker)
	}, l.id, func(page []T) bool {
		found = page
		if other != nil {
			found = slices.DeleteFunc(page, other)
		}
		return len(found) == 0 && other != nil
	})
	return found, more, endless(err, "list "+l.noun+"s", l.call.Path)
}
