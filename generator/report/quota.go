package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// quotaRow is one resource of the project. Known says whether its use is known: limits alone do not say it.
type quotaRow struct {
	name        string
	limit, used int
	known       bool
}

// quotas are the resources with a limit or with use, by name, and the number of the others: each volume type has three of them.
func quotas(inv v1alpha1.Inventory) (rows []quotaRow, hidden int) {
	if inv.Quota.State == v1alpha1.Known {
		for _, name := range slices.Sorted(maps.Keys(inv.Quota.Value)) {
			q := inv.Quota.Value[name]
			if q.Limit < 0 && q.InUse == 0 {
				hidden++
				continue
			}
			rows = append(rows, quotaRow{name, q.Limit, q.InUse, true})
		}
		return rows, hidden
	}
	if l := inv.Limits.Value; inv.Limits.State == v1alpha1.Known {
		rows = []quotaRow{
			{name: "volumes", limit: l.Volumes},
			{name: "gigabytes", limit: l.Gigabytes},
			{name: "snapshots", limit: l.Snapshots},
			{name: "backups", limit: l.Backups},
			{name: "backup_gigabytes", limit: l.BackupGigabytes},
		}
	}
	return rows, 0
}

type quotaTable struct {
	Rows []quotaBar
	Note string
}

// quotaBar is one resource. Drawn says that there is a limit and a use to compare.
type quotaBar struct {
	Name, Used, Limit, Word, Level string
	Percent, Width                 int
	Drawn                          bool
}

// From these shares of a quota, in percent, a page warns.
const (
	highUse = 80
	fullUse = 95
)

func quotaTableOf(inv v1alpha1.Inventory) *quotaTable {
	rows, hidden := quotas(inv)
	slices.SortStableFunc(rows, func(a, b quotaRow) int { return cmp.Compare(rank(a.name), rank(b.name)) })
	t := &quotaTable{}
	for _, q := range rows {
		t.Rows = append(t.Rows, bar(q))
	}
	switch {
	case len(rows) == 0 && hidden == 0:
		t.Note = "The quotas of the project are not known."
	case hidden > 0:
		t.Note = count(hidden, "more resource") + " without a limit and without use."
	case inv.Quota.State != v1alpha1.Known:
		t.Note = "These are limits. What is in use is not known: " + unknown(inv.Quota.State, inv.Quota.Reason) + "."
	}
	return t
}

func bar(q quotaRow) quotaBar {
	b := quotaBar{Name: resource(q.name), Used: "not known", Limit: amount(q.limit), Level: "low"}
	if q.known {
		b.Used = thousands(q.used)
	}
	switch {
	case q.name == "per_volume_gigabytes":
		b.Used, b.Word = "-", "a limit of each volume"
	case q.limit < 0:
		b.Word = "no limit"
	case q.limit == 0:
		b.Word = "none is allowed"
	case !q.known:
		b.Word = "use not known"
	default:
		b.Drawn, b.Percent = true, int(float64(q.used)/float64(q.limit)*100)
		b.Width = min(max(b.Percent, 0), 100)
		if b.Percent >= fullUse {
			b.Level, b.Word = "full", "full or nearly full"
		} else if b.Percent >= highUse {
			b.Level, b.Word = "high", "high"
		}
	}
	return b
}

// rank puts the resources that every project has first, and those of volume types last.
func rank(name string) int {
	first := []string{"volumes", "gigabytes", "per_volume_gigabytes", "snapshots", "backups", "backup_gigabytes", "groups"}
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}

// resource writes the name of a quota: gigabytes_fast is "Storage (GiB) of type fast".
func resource(name string) string {
	titles := map[string]string{
		"volumes": "Volumes", "gigabytes": "Storage (GiB)", "snapshots": "Snapshots", "backups": "Backups",
		"backup_gigabytes": "Backup storage (GiB)", "per_volume_gigabytes": "Largest volume (GiB)", "groups": "Volume groups",
	}
	if title := titles[name]; title != "" {
		return title
	}
	for _, prefix := range []string{"volumes", "gigabytes", "snapshots"} {
		if volumeType, found := strings.CutPrefix(name, prefix+"_"); found {
			return titles[prefix] + " of type " + volumeType
		}
	}
	return name
}
