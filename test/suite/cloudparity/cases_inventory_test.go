package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// inventoryCases are about what the generator reads: zones, types, limits, quota.
func inventoryCases() []Case {
	var all []Case
	read := func(name string, call cloud.Call, status int, as Role, query string, ids func(t *testing.T, b *Bed) []string) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			r := Request{Call: call, As: as, Query: query}
			if ids != nil {
				r.IDs = ids(t, b)
			}
			return b.do(t, r)
		}})
	}
	of := func(role Role) func(*testing.T, *Bed) []string {
		return func(t *testing.T, b *Bed) []string { return []string{b.session(t, role).project} }
	}
	typed := func(name string) func(*testing.T, *Bed) []string {
		return func(t *testing.T, b *Bed) []string { return []string{b.typeID(t, name)} }
	}
	for _, as := range []Role{Member, Reader, Admin, AppCred} {
		who := " as " + string(as)
		read("volume zones"+who, volumeZones, http.StatusOK, as, "", nil)
		read("compute zones"+who, computeZones, http.StatusOK, as, "", nil)
		read("volume types"+who, listTypes, http.StatusOK, as, "", nil)
		read("default type"+who, defaultType, http.StatusOK, as, "", nil)
		read("limits"+who, volumeLimits, http.StatusOK, as, "", nil)
		read("extra specs of a plain type"+who, extraSpecs, http.StatusOK, as, "", typed("fast"))
		read("extra specs of a multiattach type"+who, extraSpecs, http.StatusOK, as, "", typed("multiattach"))
		read("own quota with usage"+who, quotaSet, http.StatusOK, as, "usage=true", of(Member))
		read("own quota"+who, quotaSet, http.StatusOK, as, "", of(Member))
		read("group types"+who, groupTypes, http.StatusOK, as, "", nil)
		read("backups of the project"+who, listProjectBackups, http.StatusOK, as, "", nil)
	}
	read("services as member are forbidden", listServices, http.StatusForbidden, Member, "", nil)
	read("services as admin", listServices, http.StatusOK, Admin, "binary=cinder-backup", nil)
	read("quota of another project as member is forbidden", quotaSet, http.StatusForbidden, Member, "usage=true", of(Stranger))
	read("quota of another project as reader is forbidden", quotaSet, http.StatusForbidden, Reader, "", of(Stranger))
	read("quota of another project as admin", quotaSet, http.StatusOK, Admin, "usage=true", of(Stranger))
	read("encryption of a type as member is forbidden", encryption, http.StatusForbidden, Member, "", typed("standard"))
	read("encryption of a type as reader is forbidden", encryption, http.StatusForbidden, Reader, "", typed("standard"))
	read("encryption of a plain type as admin", encryption, http.StatusOK, Admin, "", typed("standard"))
	read("encryption of an unknown type as admin", encryption, http.StatusNotFound, Admin, "", func(*testing.T, *Bed) []string { return []string{nothing} })
	read("encryption of an unknown type as member is forbidden", encryption, http.StatusForbidden, Member, "", func(*testing.T, *Bed) []string { return []string{nothing} })
	read("extra specs of an unknown type", extraSpecs, http.StatusNotFound, Member, "", func(*testing.T, *Bed) []string { return []string{nothing} })
	read("public types only", listTypes, http.StatusOK, Member, "is_public=true", nil)
	read("all types as admin", listTypes, http.StatusOK, Admin, "is_public=None", nil)
	read("types with a limit that is no number", listTypes, http.StatusBadRequest, Member, "limit=many", nil)
	read("types after an unknown marker begin anew", listTypes, http.StatusOK, Member, "marker="+nothing, nil)
	read("group types before they existed", at(groupTypes, beforeGroupTypes), http.StatusNotFound, Member, "", nil)
	withType := func(name string, as Role, fields object) {
		all = append(all, Case{Name: name, Call: listTypes, Status: http.StatusOK, As: as, Run: func(t *testing.T, b *Bed) Answer {
			b.volumeType(t, fields)
			return b.do(t, Request{Call: listTypes, As: as})
		}})
	}
	withType("a type of one zone shows its zone to the member", Member, oneZone)
	withType("a private type is hidden from the member", Member, object{"os-volume-type-access:is_public": false})
	withType("a private type is hidden from the admin who does not ask", Admin, object{"os-volume-type-access:is_public": false})
	withType("a type without a description", Member, object{"extra_specs": object{"multiattach": "<is> False", "replication_enabled": "<is> True", "hidden": "x"}})
	all = append(all, Case{Name: "types page by page", Call: listTypes, Status: http.StatusOK, As: Member, Run: walkTypes})
	return all
}

// walkTypes reads the types two at a time and returns the last page.
func walkTypes(t *testing.T, b *Bed) Answer {
	whole := len(b.do(t, Request{Call: listTypes, As: Member}).want(t, http.StatusOK).List("volume_types"))
	seen := map[string]bool{}
	query := "limit=2"
	for {
		a := b.do(t, Request{Call: listTypes, As: Member, Query: query}).want(t, http.StatusOK)
		page := a.List("volume_types")
		for i := range page {
			seen[a.Text("volume_types", i, "id")] = true
		}
		if len(page) < 2 {
			if a.At("volume_type_links") != nil {
				t.Errorf("the last page names a next one: %s", a)
			}
			if len(seen) != whole {
				t.Errorf("%d types page by page, %d at once", len(seen), whole)
			}
			return a
		}
		if a.Text("volume_type_links", 0, "rel") != "next" {
			t.Errorf("a full page names no next one: %s", a)
		}
		query = "limit=2&marker=" + a.Text("volume_types", len(page)-1, "id")
	}
}

// typeID is the id of a volume type by its name.
func (b *Bed) typeID(t *testing.T, name string) string {
	t.Helper()
	return b.named(t, listTypes, "volume_types", name)
}
