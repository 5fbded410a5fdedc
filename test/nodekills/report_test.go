package nodekills

import (
	"fmt"
	"io"
)

// printReport prints what became of each kill.
func printReport(w io.Writer) {
	lost := 0
	for _, o := range sorted(outcomes) {
		what := "converged"
		if o.lost {
			what = "LOST"
			lost++
		}
		fmt.Fprintf(w, "%s | %s | %s | %s | %s | %d\n", o.kind, o.rpc, o.call, o.when, what, o.retries)
	}
	fmt.Fprintf(w, "%d kills, %d lost\n", len(outcomes), lost)
}
