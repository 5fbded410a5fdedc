// Package paging reads lists that a cloud returns in pages. A list that does not end is an error. A cloud that ignores the
// marker, repeats itself or invents items costs a limited number of requests and limited memory.
package paging

import (
	"errors"
	"fmt"
	"slices"
)

// The limits of one list. Projects have some ten thousand volumes at most. Cinder returns a thousand in a page, unless its
// administrator lowers osapi_max_limit.
const (
	maxPages = 1000
	MaxItems = 100_000
)

// ErrEndless means that a list does not end.
var ErrEndless = errors.New("the list does not end")

// Walk reads a list page by page and calls visit with each page, until visit returns false or the list ends. read gets the ID of
// the last item of the previous page, empty at first. It returns whether Cinder announces a further page. An empty page also ends
// the list. If a page contains the marker among other items, visit does not get that item.
//
// Errors: those of read. ErrEndless for a page that ends with the marker, a repeated marker, more than maxPages pages, or more
// than maxItems items.
//
// Walk finds a loop of pages without a list of all markers. It keeps one earlier marker and replaces it after 1, 2, 4, 8… pages
// (Brent's algorithm). So it finds a loop of n pages after about 3n.
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
		case pages == maxPages:
			return fmt.Errorf("%w: it has more than %d pages", ErrEndless, maxPages)
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
