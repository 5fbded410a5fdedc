// Command cmd applies mutants of the product, and says which of them no test catches.
//
//	go run ./test/suite/mutants/cmd [-only REGEXP]    the mutants of test/suite/mutants, each with the test that must catch it
//	go run ./test/suite/mutants/cmd -random 10 -dirs driver/host,driver/node [-seed TEXT] [-suites test/suite/driver] [-full]
//
// The second form draws mutants by rule from the lines that tests run, and prints those that survive. It fails for none of them: somebody has to
// read them, since a change may mean nothing. With -full the tests of the package also run without -short.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/mutant"
	"github.com/cinder-csi/cinder-csi/test/suite/mutants"
)

func main() {
	only := flag.String("only", "", "apply only mutants whose names match")
	count := flag.Int("random", 0, "draw this number of mutants by rule")
	seed := flag.String("seed", "", "of the draw; the date by default")
	dirs := flag.String("dirs", "", "directories of which the draw is, separated by commas; by default one that the seed chooses")
	suites := flag.String("suites", "", "packages whose tests run too, separated by commas")
	full := flag.Bool("full", false, "run the tests of the package without -short too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := os.Getwd()
	switch {
	case err != nil:
	case *count == 0:
		names := regexp.MustCompile(*only)
		err = applyAll(ctx, root, slices.DeleteFunc(mutants.All(), func(m mutant.Mutant) bool { return !names.MatchString(m.Name) }), os.Stdout)
	default:
		if *seed == "" {
			*seed = time.Now().Format(time.DateOnly)
		}
		fmt.Println("seed", *seed)
		d := random{*count, seedOf(*seed), split(*dirs), split(*suites), *full}
		if len(d.dirs) == 0 {
			d.dirs = []string{domains[d.seed%uint64(len(domains))]}
		}
		err = d.run(ctx, root, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
