package paging

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func self(s string) string { return s }

// serve gives pages by their number, counted from 0.
func serve(requests *int, page func(n int) []string, more bool) func(string) ([]string, bool, error) {
	return func(string) ([]string, bool, error) {
		*requests++
		return page(*requests - 1), more, nil
	}
}

func TestAListThatDoesNotEndIsAnErrorAfterFewRequests(t *testing.T) {
	fresh := func(n int) []string { return []string{strconv.Itoa(2 * n), strconv.Itoa(2*n + 1)} }
	circle := func(pages int) func(n int) []string { return func(n int) []string { return fresh(n % pages) } }
	for name, tc := range map[string]struct {
		page     func(n int) []string
		maxItems int
		want     string
		requests int // at most
	}{
		"the marker is ignored":              {circle(1), MaxItems, "ends with the item", 2},
		"two pages by turns":                 {circle(2), MaxItems, "nothing new", 6},
		"a circle of a hundred pages":        {circle(100), MaxItems, "nothing new", 300},
		"new items without end":              {fresh, MaxItems, "1000 pages", maxPages},
		"more items than there can be":       {fresh, 9, "9 items", 5},
		"items without an id":                {func(int) []string { return []string{"", ""} }, MaxItems, "nothing new", 1},
		"the page before, the other way":     {func(n int) []string { return [][]string{{"a", "b"}, {"b", "a"}}[n%2] }, MaxItems, "nothing new", 6},
		"a part of the page before":          {func(n int) []string { return [][]string{{"a", "b"}, {"a"}}[min(n, 1)] }, MaxItems, "ends with the item", 3},
		"the first page again and again":     {func(n int) []string { return [][]string{{"a", "b"}, {"c"}, {"d"}}[n%3] }, MaxItems, "nothing new", 9},
		"each page only the second last one": {func(n int) []string { return [][]string{{"a"}, {"b"}}[n%2] }, MaxItems, "nothing new", 6},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			_, err := All(tc.maxItems, serve(&requests, tc.page, true), self)
			if !errors.Is(err, ErrEndless) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if requests > tc.requests {
				t.Errorf("%d requests, want at most %d", requests, tc.requests)
			}
		})
	}
}

func TestAListIsReadToItsEnd(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e"}
	for name, announces := range map[string]bool{"announced": true, "by an empty page": false} {
		var markers []string
		all, err := All(len(list), func(marker string) ([]string, bool, error) {
			markers = append(markers, marker)
			rest := list
			for i, s := range list {
				if s == marker {
					rest = list[i+1:]
				}
			}
			return rest[:min(2, len(rest))], !announces || len(rest) > 2, nil
		}, self)
		if diff := cmp.Diff(list, all); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
		want := []string{"", "b", "d"}
		if !announces {
			want = append(want, "e")
		}
		if diff := cmp.Diff(want, markers); diff != "" {
			t.Errorf("%s: markers, -want +got\n%s", name, diff)
		}
	}
}

func TestAPageThatRepeatsTheMarkerAmongNewItemsIsReadWithoutIt(t *testing.T) {
	pages := map[string][]string{"": {"a", "b"}, "b": {"b", "c"}}
	all, err := All(MaxItems, func(marker string) ([]string, bool, error) { return pages[marker], true, nil }, self)
	if diff := cmp.Diff([]string{"a", "b", "c"}, all); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestAWalkEndsWhereItsCallerHasEnoughAndWithTheReadersError(t *testing.T) {
	requests := 0
	page := func(n int) []string { return []string{strconv.Itoa(n)} }
	if err := Walk(MaxItems, serve(&requests, page, true), self, func(page []string) bool { return page[0] != "2" }); err != nil || requests != 3 {
		t.Errorf("%v after %d requests, want 3", err, requests)
	}
	broken := errors.New("broken")
	if _, err := All(MaxItems, func(string) ([]string, bool, error) { return nil, false, broken }, self); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
