// Package pairwise chooses few combinations of settings in which every two values of two settings meet. Most defects of features that work alone
// show when two of them are on.
package pairwise

import "slices"

// Row is one combination: for each setting the index of its value.
type Row []int

type pair struct{ a, va, b, vb int }

// Rows gives rows in which every value of every setting meets every value of every other setting; values has how many each has. The greedy choice
// is the same each time.
func Rows(values []int) []Row {
	open := every(values)
	var rows []Row
	for len(open) > 0 {
		r := choose(values, open, len(rows))
		if cover(open, r) == 0 { // the greedy choice found nothing new: take one pair that is left
			p := first(open)
			r[p.a], r[p.b] = p.va, p.vb
			cover(open, r)
		}
		rows = append(rows, r)
	}
	return rows
}

func every(values []int) map[pair]bool {
	open := map[pair]bool{}
	for a := range values {
		for b := a + 1; b < len(values); b++ {
			for va := range values[a] {
				for vb := range values[b] {
					open[pair{a, va, b, vb}] = true
				}
			}
		}
	}
	return open
}

// choose sets one value after the other, each time that with the most open pairs. Another setting is first in each row.
func choose(values []int, open map[pair]bool, row int) Row {
	r := Row(slices.Repeat([]int{-1}, len(values)))
	for i := range values {
		at := (row%len(values) + i) % len(values)
		best, most := 0, -1
		for v := range values[at] {
			v = (v + row) % values[at]
			if gain := r.gain(open, at, v); gain > most {
				best, most = v, gain
			}
		}
		r[at] = best
	}
	return r
}

// gain is how many open pairs a value makes with those that are set.
func (r Row) gain(open map[pair]bool, at, v int) int {
	gain := 0
	for other, set := range r {
		switch {
		case set < 0 || other == at:
		case other < at && open[pair{other, set, at, v}], other > at && open[pair{at, v, other, set}]:
			gain++
		}
	}
	return gain
}

// cover takes the pairs of a row away, and gives their number.
func cover(open map[pair]bool, r Row) int {
	before := len(open)
	for a := range r {
		for b := a + 1; b < len(r); b++ {
			delete(open, pair{a, r[a], b, r[b]})
		}
	}
	return before - len(open)
}

// first is the lowest pair.
func first(open map[pair]bool) pair {
	var all []pair
	for p := range open {
		all = append(all, p)
	}
	return slices.MinFunc(all, func(x, y pair) int {
		return slices.Compare([]int{x.a, x.b, x.va, x.vb}, []int{y.a, y.b, y.va, y.vb})
	})
}
