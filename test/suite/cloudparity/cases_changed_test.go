package cloudparity

import (
	"net/http"
	"testing"
)

var listChangedVolumes = at(listVolumes, "3.60")

// changedCases are about finding volumes by the time of their last change.
func changedCases() []Case {
	list := func(name string, status int, as Role, query string, volumes int) Case {
		return Case{Name: name, Call: listChangedVolumes, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			name := b.name()
			if status == http.StatusOK {
				for range 2 {
					b.volume(t, object{"name": name})
				}
			}
			a := b.do(t, Request{Call: listChangedVolumes, As: as, Query: "name=" + name + "&" + query}).want(t, status)
			if got := len(a.List("volumes")); status == http.StatusOK && got != volumes {
				t.Errorf("%d volumes, want %d: %s", got, volumes, a)
			}
			return a
		}}
	}
	return []Case{
		list("volumes changed since a second that is past", http.StatusOK, Member, "updated_at=gte:2020-01-01T00:00:00", 2),
		list("volumes changed since a second that is past as reader", http.StatusOK, Reader, "updated_at=gte:2020-01-01T00:00:00", 2),
		list("volumes changed since a second to come", http.StatusOK, Member, "updated_at=gte:2120-01-01T00:00:00", 0),
		list("available volumes changed since a second that is past", http.StatusOK, Member, "status=available&updated_at=gte:2020-01-01T00:00:00", 2),
		list("volumes changed since what is no time", http.StatusBadRequest, Member, "updated_at=gte:yesterday", -1),
		list("volumes compared with a time by what is no operator", http.StatusBadRequest, Member, "updated_at=after:2020-01-01T00:00:00", -1),
		list("changed volumes after an unknown marker", http.StatusNotFound, Member, "updated_at=gte:2020-01-01T00:00:00&marker="+nothing, -1),
	}
}
