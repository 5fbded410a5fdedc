package cloudparity

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// listCases are about finding volumes: by name, by page, by filter.
func listCases() []Case {
	list := func(name string, status int, as Role, query func(t *testing.T, b *Bed) string, volumes int) Case {
		return Case{Name: name, Call: listVolumes, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			a := b.do(t, Request{Call: listVolumes, As: as, Query: query(t, b)}).want(t, status)
			if got := len(a.List("volumes")); status == http.StatusOK && volumes >= 0 && got != volumes {
				t.Errorf("%d volumes, want %d: %s", got, volumes, a)
			}
			return a
		}}
	}
	named := func(f object) func(*testing.T, *Bed) string {
		return func(t *testing.T, b *Bed) string {
			name := b.name()
			for range 2 {
				fields := object{"name": name}
				for k, v := range f {
					fields[k] = v
				}
				b.volume(t, fields)
			}
			return "name=" + name
		}
	}
	fixed := func(query string) func(*testing.T, *Bed) string {
		return func(*testing.T, *Bed) string { return query }
	}
	return []Case{
		list("two volumes of one name", http.StatusOK, Member, named(nil), 2),
		list("volumes by name as reader", http.StatusOK, Reader, named(nil), 2),
		list("volumes by name as admin", http.StatusOK, Admin, named(nil), 2),
		list("volumes of another project are not listed", http.StatusOK, Stranger, named(nil), 0),
		list("volumes by a name nothing has", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return "name=" + b.name() }, 0),
		list("volumes by a name's beginning", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			b.volume(t, nil)
			return "name=" + b.made[:len(b.made)-1]
		}, 0),
		list("volumes by name and status", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(nil)(t, b) + "&status=available" }, 2),
		list("volumes by name and another status", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(nil)(t, b) + "&status=error" }, 0),
		list("volumes by name and zone", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			return named(object{"availability_zone": "az1"})(t, b) + "&availability_zone=az1"
		}, 2),
		list("volumes by metadata", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			mark := b.name()
			named(object{"metadata": object{"parity": mark, "more": "x"}})(t, b)
			return "metadata=" + url.QueryEscape(`{"parity":"`+mark+`"}`)
		}, 2),
		list("volumes by metadata as Python writes it", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			mark := b.name()
			named(object{"metadata": object{"parity": mark}})(t, b)
			return "metadata=" + url.QueryEscape(`{'parity':'`+mark+`'}`)
		}, 2),
		list("volumes one at a time", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(nil)(t, b) + "&limit=1" }, 1),
		list("volumes with limit zero", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(nil)(t, b) + "&limit=0" }, 0),
		list("volumes after an unknown marker", http.StatusNotFound, Member, fixed("marker="+nothing), -1),
		list("volumes after a marker that is no UUID", http.StatusNotFound, Member, fixed("marker=x"), -1),
		list("volumes after a volume that was deleted", http.StatusNotFound, Member, func(t *testing.T, b *Bed) string {
			id := b.volume(t, nil)
			b.remove(t, id)
			return "limit=1&marker=" + id
		}, -1),
		list("volumes with a limit that is no number", http.StatusBadRequest, Member, fixed("limit=many"), -1),
		list("volumes with a negative limit", http.StatusBadRequest, Member, fixed("limit=-1"), -1),
		list("a filter Cinder does not know is ignored at 3.0", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(nil)(t, b) + "&colour=blue" }, 2),
		list("a filter by part of a name is ignored at 3.0", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			return named(nil)(t, b) + "&" + url.QueryEscape("name~") + "=nothing"
		}, 2),
		list("volumes in an order Cinder does not know", http.StatusBadRequest, Member, fixed("sort=colour"), -1),
		{Name: "volumes page by page", Call: listVolumes, Status: http.StatusOK, As: Member, Run: walkVolumes},
		{
			Name: "volumes under another project's address", Call: listVolumes, Status: http.StatusBadRequest, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				return b.do(t, Request{Call: listVolumes, As: Member, Of: Stranger})
			},
		},
	}
}

// walkVolumes reads five volumes two at a time, newest first, and returns the last page.
func walkVolumes(t *testing.T, b *Bed) Answer {
	name := b.name()
	var want []string
	for range 5 {
		want = append(want, b.volume(t, object{"name": name}))
	}
	var seen []string
	query := "name=" + name + "&limit=2"
	var order []string // newest first; of the same second, the highest ID first
	next := query
	for {
		a := b.do(t, Request{Call: listVolumes, As: Member, Query: next}).want(t, http.StatusOK)
		page := a.List("volumes")
		for i := range page {
			seen = append(seen, a.Text("volumes", i, "id"))
			order = append(order, a.Text("volumes", i, "created_at")+" "+a.Text("volumes", i, "id"))
		}
		if len(page) < 2 {
			if !slices.IsSortedFunc(order, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("the volumes come in this order, which is not newest first: %v", order)
			}
			slices.Sort(seen)
			slices.Sort(want)
			if !slices.Equal(seen, want) {
				t.Errorf("page by page %v, want %v", seen, want)
			}
			if a.At("volumes_links") != nil {
				t.Errorf("the last page names a next one: %s", a)
			}
			return a
		}
		link, err := url.Parse(a.Text("volumes_links", 0, "href"))
		if err != nil || a.Text("volumes_links", 0, "rel") != "next" {
			t.Fatalf("a full page names no next one: %v %s", err, a)
		}
		if got := link.Query().Get("marker"); got != seen[len(seen)-1] {
			t.Errorf("the next page begins after %s, want the last volume of this one, %s", got, seen[len(seen)-1])
		}
		next = query + "&marker=" + seen[len(seen)-1]
	}
}
