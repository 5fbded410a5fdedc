package openstack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

// project is a Cinder with three volumes, snapshots and backups that refuses a filter. It lists two objects in a page.
type project struct {
	filter  string // refused
	status  int    // of the refusal
	broken  bool   // it refuses the same list without the filter too
	mu      sync.Mutex
	refused int
	plain   int // lists without the filter
}

func (p *project) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	collection := strings.Split(r.URL.Path, "/")[3]
	query := r.URL.Query()
	if query.Has(p.filter) || p.broken {
		p.refused++
		w.WriteHeader(p.status)
		_, _ = fmt.Fprint(w, `{"badRequest": {"message": "Invalid filters are found in query options."}}`)
		return
	}
	p.plain++
	ids := []string{numbered(1), numbered(2), numbered(3)}
	ids = ids[slices.Index(ids, query.Get("marker"))+1:]
	links := ""
	if len(ids) > 2 {
		ids, links = ids[:2], `{"rel": "next"}`
	}
	var list []string
	for _, id := range ids {
		list = append(list, `{"id": "`+id+`", "name": "n`+id[len(id)-1:]+`", "volume_id": "`+id+`"}`)
	}
	_, _ = fmt.Fprintf(w, `{"%[1]s": [%[2]s], "%[1]s_links": [%[3]s]}`, collection, strings.Join(list, ","), links)
}

// filtered are the lists with a filter. Each finds the third object.
var filtered = map[string]func(ctx context.Context, c *Cloud) (ids []string, err error){
	"volumes?name": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		return idsOf(c.VolumesNamed(ctx, "n3"))
	},
	"snapshots?name": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		return snapshotIDs(c.SnapshotsNamed(ctx, "n3"))
	},
	"backups?name": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		return snapshotIDs(c.BackupsNamed(ctx, "n3"))
	},
	"snapshots?volume_id": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		page, _, err := c.Snapshots(ctx, volume.SnapshotPage{Volume: volume.ID(numbered(3))})
		return snapshotIDs(page, err)
	},
	"backups?volume_id": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		page, _, err := c.Backups(ctx, volume.SnapshotPage{Volume: volume.ID(numbered(3))})
		return snapshotIDs(page, err)
	},
	"volumes?updated_at": func(ctx context.Context, c *Cloud) (ids []string, err error) {
		since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		page, more, err := c.Select(ctx, volume.Selection{Since: since})
		if len(page) == 2 && more {
			page, _, err = c.Select(ctx, volume.Selection{Since: since, Page: volume.Page{Marker: page[1].ID}})
		}
		return idsOf(page, err)
	},
}

func idsOf(all []volume.Volume, err error) (ids []string, _ error) {
	for _, v := range all {
		ids = append(ids, string(v.ID))
	}
	return ids, err
}

func snapshotIDs(all []volume.Snapshot, err error) (ids []string, _ error) {
	for _, p := range all {
		ids = append(ids, string(p.ID))
	}
	return ids, err
}

// loginAt logs in to a Cinder behind the fake Keystone.
func loginAt(t *testing.T, cinder http.RoundTripper) *cloud.Cloud {
	t.Helper()
	s := cloud.Settings{Name: "fake", AuthURL: "http://keystone/v3", UserID: "u", Password: "p", ProjectID: "p"}
	login, err := cloud.Connect(t.Context(), s, cloud.Options{Transport: split{&fake{}, cinder}})
	if err != nil {
		t.Fatal(err)
	}
	return login
}

func TestARefusedFilterIsReplacedByTheWholeList(t *testing.T) {
	for name, find := range filtered {
		for _, status := range []int{400, 404, 405, 406, 501} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, filter, _ := strings.Cut(name, "?")
					p := &project{filter: filter, status: status}
					login := loginAt(t, memnet.Transport(p))
					c := NewCurrent(func(context.Context) (*cloud.Cloud, error) { return login, nil }, slog.New(slog.DiscardHandler))
					finds := func(refused int) {
						t.Helper()
						p.refused = 0
						got, err := find(t.Context(), c)
						if diff := cmp.Diff([]string{numbered(3)}, got); diff != "" || err != nil || p.refused != refused {
							t.Errorf("%v, %d refusals, want %d; -want +got\n%s", err, p.refused, refused, diff)
						}
					}
					finds(1)
					finds(0)
					time.Sleep(filterPause)
					finds(1)
					finds(0)
					login = loginAt(t, memnet.Transport(p)) // after a reload
					finds(1)
					finds(0)
				})
			})
		}
	}
}

// These answers do not say that the filter is unknown: the list without it would cost more and say no more.
func TestAListIsNotRepeatedWithoutItsFilterForAnotherReason(t *testing.T) {
	for name, find := range filtered {
		for _, status := range []int{401, 403, 413, 429, 500, 503, 504} {
			_, filter, _ := strings.Cut(name, "?")
			p := &project{filter: filter, status: status}
			c := New(loginAt(t, memnet.Transport(p)), slog.New(slog.DiscardHandler))
			if _, err := find(t.Context(), c); err == nil || p.plain != 0 {
				t.Errorf("%s, HTTP %d: %v, %d lists without the filter", name, status, err, p.plain)
			}
		}
	}
}

func TestARefusedListIsNoRefusedFilter(t *testing.T) {
	for name, find := range filtered {
		_, filter, _ := strings.Cut(name, "?")
		p := &project{filter: filter, status: 400, broken: true}
		c := New(loginAt(t, memnet.Transport(p)), slog.New(slog.DiscardHandler))
		for range 2 {
			p.refused = 0
			if _, err := find(t.Context(), c); !volume.Is(err, volume.Unavailable) || p.refused != 2 {
				t.Errorf("%s: %v after %d requests, want a retryable error after 2", name, err, p.refused)
			}
		}
		p.broken, p.refused = false, 0
		if got, err := find(t.Context(), c); err != nil || len(got) != 1 || p.refused != 1 {
			t.Errorf("%s, repaired: %v, %v", name, got, err)
		}
	}
}
