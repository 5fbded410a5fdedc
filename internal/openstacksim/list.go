package openstacksim

import (
	"cmp"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLimit is the default of osapi_max_limit of Cinder and max_limit of Nova.
const maxLimit = 1000

// query is a list request of Cinder, split into paging and filters.
type query struct {
	limit, offset int
	marker        string
	sort          []sortKey
	count         bool
	filters       []param
}

type sortKey struct {
	key  string
	down bool
}

// listQuery reads the parameters of a list. Users who are not administrators may use the filters in allowed.
func (c *call) listQuery(allowed, sortable []string) *query {
	q := &query{limit: c.pageSize}
	var keys, directions string
	for _, p := range c.params {
		switch p.key {
		case "limit":
			q.limit = min(position(p.value, "limit param must be an integer", "limit param must be positive"), c.pageSize)
		case "offset":
			q.offset = position(p.value, "offset must be an integer", "offset must be >= 0")
		case "marker":
			q.marker = p.value
		case "sort":
			keys, directions = splitSort(p.value)
		case "sort_key":
			keys = p.value // one value, whatever it holds
			if strings.Contains(keys, ",") {
				panic(inputError("Invalid sort key"))
			}
		case "sort_dir":
			directions = p.value
		case "with_count":
			if c.version >= 45 {
				if !isBool(p.value) {
					panic(fault(http.StatusBadRequest, "Value '"+p.value+"' for 'with_count' is not a boolean."))
				}
				q.count = isTrue(p.value)
				break
			}
			q.filters = append(q.filters, p)
		default:
			q.filters = append(q.filters, p)
		}
	}
	q.sortBy(keys, directions, sortable)
	c.checkFilters(q, allowed)
	return q
}

// position reads a number from 0 on, or refuses it with one of the messages.
func position(text, noNumber, negative string) int {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		panic(fault(http.StatusBadRequest, noNumber))
	case n < 0:
		panic(fault(http.StatusBadRequest, negative))
	}
	return n
}

func isTrue(s string) bool {
	return slices.Contains([]string{"1", "t", "true", "on", "y", "yes"}, strings.ToLower(s))
}

// isBool reports whether s is a word for true or false.
func isBool(s string) bool {
	return isTrue(s) || slices.Contains([]string{"0", "f", "false", "off", "n", "no"}, strings.ToLower(s))
}

// splitSort turns "name:asc,size" into its keys and directions.
func splitSort(s string) (keys, directions string) {
	var k, d []string
	for part := range strings.SplitSeq(s, ",") {
		key, direction, ok := strings.Cut(part, ":")
		if !ok {
			direction = "desc"
		}
		k, d = append(k, key), append(d, direction)
	}
	return strings.Join(k, ","), strings.Join(d, ",")
}

func (q *query) sortBy(keys, directions string, sortable []string) {
	keys = cmp.Or(keys, "created_at")
	dirs := strings.Split(directions, ",")
	for i, key := range strings.Split(keys, ",") {
		direction := dirs[min(i, len(dirs)-1)]
		switch direction {
		case "":
			direction = "desc"
		case "asc", "desc":
		default:
			panic(inputError("Unknown sort direction, must be 'desc' or 'asc'."))
		}
		key = strings.TrimSpace(key)
		if !slices.Contains(sortable, key) {
			panic(inputError("Invalid sort key"))
		}
		q.sort = append(q.sort, sortKey{key, direction == "desc"})
	}
	if !slices.ContainsFunc(q.sort, func(k sortKey) bool { return k.key == "id" }) {
		q.sort = append(q.sort, sortKey{"id", q.sort[len(q.sort)-1].down})
	}
}

// checkFilters refuses filters that resource_filters.json of Cinder does not list. Before 3.31, Cinder ignored them.
// Administrators may use any filter.
func (c *call) checkFilters(q *query, allowed []string) {
	if c.token.admin() {
		return
	}
	var kept []param
	var unknown []string
	for _, f := range q.filters {
		switch {
		case slices.Contains(allowed, f.key):
			kept = append(kept, f)
		case f.key != "all_tenants":
			unknown = append(unknown, f.key)
		}
	}
	if len(unknown) > 0 && c.version >= 31 {
		panic(fault(http.StatusBadRequest, "Invalid filters "+strings.Join(unknown, ",")+" are found in query options."))
	}
	q.filters = kept
}

// pop removes one filter and returns it.
func (q *query) pop(key string) (string, bool) {
	for i, f := range q.filters {
		if f.key == key {
			q.filters = slices.Delete(q.filters, i, i+1)
			return f.value, true
		}
	}
	return "", false
}

// fields are those of one kind of object, each as text that sorts.
type fields[T any] map[string]func(T) string

// match applies a filter for the text of one field. Unknown fields match nothing, as in the database layer of Cinder.
func (f fields[T]) match(x T, filter param) bool {
	read, ok := f[filter.key]
	return ok && sameText(read(x), filter.value)
}

// page filters, sorts and cuts a list. more reports whether a next link follows, missing whether the object of the marker does
// not exist. It filters first: a name among ten thousand volumes is looked for several times a second.
func page[T any](q *query, all []T, f fields[T], matches func(T, param) bool) (items []T, total int, more, missing bool) {
	var kept []sorted[T]
	id := f["id"]
	found := q.marker == ""
	for _, x := range all {
		marker := q.marker != "" && id(x) == q.marker
		found = found || marker
		keep := !slices.ContainsFunc(q.filters, func(p param) bool { return !matches(x, p) })
		if keep {
			total++
		}
		if keep || marker {
			kept = append(kept, sorted[T]{x, f.sortedBy(x, q.sort), keep})
		}
	}
	if !found {
		return nil, 0, false, true
	}
	slices.SortFunc(kept, func(a, b sorted[T]) int { return q.compare(a.keys, b.keys) })
	passed := q.marker == ""
	for _, k := range kept {
		if passed && k.keep {
			items = append(items, k.row)
		}
		passed = passed || id(k.row) == q.marker
	}
	items = items[min(q.offset, len(items)):]
	items = items[:min(q.limit, len(items))]
	return items, total, q.limit > 0 && len(items) == q.limit, false
}

// sorted is a row with the texts that it is sorted by. The object of the marker may be there without passing the filters.
type sorted[T any] struct {
	row  T
	keys []string
	keep bool
}

// sortedBy are the values of the sort keys, in the collation of the database.
func (f fields[T]) sortedBy(x T, sort []sortKey) []string {
	keys := make([]string, len(sort))
	for i, k := range sort {
		if read := f[k.key]; read != nil {
			keys[i] = strings.ToUpper(read(x))
		}
	}
	return keys
}

func (q *query) compare(a, b []string) int {
	for i, k := range q.sort {
		if order := strings.Compare(a[i], b[i]); order != 0 {
			if k.down {
				return -order
			}
			return order
		}
	}
	return 0
}

// owned is an object of a project.
type owned interface{ owner() string }

// where are the objects of which a condition holds.
func where[T any](all iter.Seq[T], holds func(T) bool) (some []T) {
	for x := range all {
		if holds(x) {
			some = append(some, x)
		}
	}
	return some
}

func (c *call) sees(project string) bool { return project == c.token.project.ID || c.token.admin() }

// visibleOf finds an object that the user may see. kind is what Cinder calls it.
func visibleOf[T owned](c *call, kind string, objects map[string]T, id string) T {
	x, found := objects[id]
	if !found || !c.sees(x.owner()) {
		panic(fault(http.StatusNotFound, kind+" "+id+" could not be found."))
	}
	return x
}

// listOf replies with a page of objects.
func listOf[T owned](c *call, q *query, kind string, detail bool, objects map[string]T, f fields[T], matches func(T, param) bool, view func(T) obj) reply {
	everywhere := c.allProjects(q)
	all := where(maps.Values(objects), func(x T) bool { return everywhere || x.owner() == c.token.project.ID })
	items, total, more, missing := page(q, all, f, matches)
	if missing {
		return fault(http.StatusNotFound, kind+" "+q.marker+" could not be found.")
	}
	name := strings.ToLower(kind) + "s"
	body := pageBody(name, items, view)
	if more {
		body = append(body, pair{name + "_links", c.nextLink(c.collection(name, detail), f["id"](items[len(items)-1]))})
	}
	return reply{status: http.StatusOK, body: body.when(q.count, pair{"count", total}), rows: len(items)}
}

func pageBody[T any](name string, items []T, view func(T) obj) obj {
	return obj{{name, each(items, view)}}
}

// each has what a function makes of every item; it is never nil.
func each[T, U any](items []T, of func(T) U) []U {
	all := make([]U, len(items))
	for i, x := range items {
		all[i] = of(x)
	}
	return all
}

// nextLink is the URL of the page after the object with this id.
func (c *call) nextLink(collection, last string) []obj {
	query := ""
	for _, p := range c.params {
		if p.key != "marker" {
			query += url.QueryEscape(p.key) + "=" + url.QueryEscape(p.value) + "&"
		}
	}
	return []obj{link("next", collection+"?"+query+"marker="+last)}
}

// sameText compares as the database of the services does: it ignores case.
func sameText(a, b string) bool { return strings.EqualFold(a, b) }

// sortNumber writes a number so that it sorts as text.
func sortNumber(n int) string {
	return strings.Repeat("0", max(0, 12-len(strconv.Itoa(n)))) + strconv.Itoa(n)
}

// sortTime writes a time so that it sorts as text.
func sortTime(t time.Time) string { return t.UTC().Format("20060102150405") }

// timeFilter checks a filter by time (3.60).
func timeFilter(q *query) {
	for _, f := range q.filters {
		if f.key != "created_at" && f.key != "updated_at" {
			continue
		}
		for part := range strings.SplitSeq(f.value, ",") {
			op, value, _ := strings.Cut(part, ":")
			if !slices.Contains([]string{"gt", "gte", "eq", "neq", "lt", "lte"}, op) {
				panic(fault(http.StatusBadRequest, "Invalid "+op+" operator"))
			}
			if _, err := parseTime(value); err != nil {
				panic(fault(http.StatusBadRequest, "Invalid "+value+" value"))
			}
		}
	}
}

func parseTime(s string) (time.Time, error) {
	return time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00"))
}

// timeMatches compares a time with a filter like "gt:2026-01-01T00:00:00,lt:…" (3.60).
func timeMatches(t time.Time, filter string) bool {
	for part := range strings.SplitSeq(filter, ",") {
		op, value, _ := strings.Cut(part, ":")
		limit, err := parseTime(value)
		if err != nil {
			return false
		}
		order := t.Truncate(time.Second).Compare(limit)
		held := map[string]bool{"gt": order > 0, "gte": order >= 0, "eq": order == 0, "neq": order != 0, "lt": order < 0, "lte": order <= 0}
		if !held[op] {
			return false
		}
	}
	return true
}

var dictItem = regexp.MustCompile(`^\s*(?:u?'((?:[^'\\]|\\.)*)'|u?"((?:[^"\\]|\\.)*)")\s*:\s*(?:u?'((?:[^'\\]|\\.)*)'|u?"((?:[^"\\]|\\.)*)")\s*(,|$)`)

// parseDict reads a Python dictionary of strings, the format of metadata filters: {'k':'v'}. ok is false for anything else.
func parseDict(s string) (map[string]string, bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") || !strings.HasSuffix(s, "}") {
		return nil, false
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	m := map[string]string{}
	for s != "" {
		part := dictItem.FindStringSubmatch(s)
		if part == nil {
			return nil, false
		}
		m[unescape(part[1]+part[2])] = unescape(part[3] + part[4])
		s = s[len(part[0]):]
	}
	return m, true
}

// hasPairs reports whether a map has all pairs of a Python dictionary.
func hasPairs(m map[string]string, dict string, same func(a, b string) bool) bool {
	want, ok := parseDict(dict)
	for k, x := range want {
		got, has := m[k]
		ok = ok && has && same(got, x)
	}
	return ok
}

var escaped = regexp.MustCompile(`\\(.)`)

func unescape(s string) string { return escaped.ReplaceAllString(s, "$1") }
