// Package paging reads the lists that a cloud gives in pages. A list that does not end is an error: a cloud that ignores the marker,
// repeats itself or makes up items without end costs a bounded number of requests and a bounded amount of memory.
package paging

import (
	"errors"
	"fmt"
	"slices"
)

// The bounds of one walk. Projects have some ten thousand volumes at most, and Cinder gives a thousand in a page unless its
// administrator lowers osapi_max_limit.
const (
	MaxPages = 1000
	MaxItems = 100_000
)

// ErrEndless is the error of a list that does not end.
var ErrEndless = errors.New("the list does not end")

// Walk reads a list page by page and calls visit with each page, until visit returns false, or the list ends. read gets the id of the
// last item of the page before, empty at first, and says whether Cinder announces a further page; an empty page ends the list, too.
// Where a page contains the marker among others, it is left out. Errors: read's; ErrEndless for a page that ends with the marker, a
// marker that comes again, more than MaxPages pages, or more items than maxItems.
//
// A cloud that runs in a circle is found without remembering what was seen: only one earlier marker is kept, and it is replaced after
// 1, 2, 4, 8… pages (Brent's algorithm), so a circle of n pages ends after about 3n.
func Walk[T any](maxItems int, read func(marker string) (page []T, more bool, err error), id func(T) string, visit func(page []T) bool) error {
	marker, earlier := "", ""
	replace, items := 1, 0
	for pages := 1; ; pages++ {
		page, more, err := read(marker)
		if err != nil {
			return err
		}
		items += len(page)
		if items > maxItems {
			return fmt.Errorf("%w: it has more than %d items", ErrEndless, maxItems)
		}
		if len(page) == 0 {
			return nil
		}
		last := id(page[len(page)-1])
		if last == marker && marker != "" {
			return fmt.Errorf("%w: page %d ends with the item after which it should begin", ErrEndless, pages)
		}
		page = slices.DeleteFunc(page, func(item T) bool { return marker != "" && id(item) == marker })
		if !visit(page) || !more {
			return nil
		}
		marker = last
		switch {
		case marker == earlier:
			return fmt.Errorf("%w: page %d contains nothing new", ErrEndless, pages)
		case pages == MaxPages:
			return fmt.Errorf("%w: it has more than %d pages", ErrEndless, MaxPages)
		case pages == replace:
			earlier, replace = marker, 2*replace
		}
	}
}

// All reads a whole list.
func All[T any](maxItems int, read func(marker string) (page []T, more bool, err error), id func(T) string) ([]T, error) {
	var all []T
	err := Walk(maxItems, read, id, func(page []T) bool {
		all = append(all, page...)
		return true
	})
	return all, err
}
