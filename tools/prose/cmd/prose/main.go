// Command prose checks the texts and names of this repository against tools/prose/words.txt and the committed baseline.
//
// It fails if a file has more findings than the baseline allows, and prints each of them with its sentence, its rule and the replacement.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cinder-csi/cinder-csi/tools/prose"
)

const (
	root         = "." // the command runs at the top of the repository
	baselineFile = "tools/prose/baseline.txt"
)

func main() {
	update := flag.Bool("update", false, "write the baseline; refused if the number of findings of a rule rises")
	all := flag.Bool("all", false, "print every finding below the directories that are arguments, whatever the baseline allows")
	suggest := flag.Bool("suggest", false, "with -all, also print where the passive voice may hide the actor")
	flag.Parse()
	err := run(os.Stdout, *update, *all, *suggest, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, update, all, suggest bool, dirs []string) error {
	checker, err := prose.NewChecker()
	if err != nil {
		return err
	}
	if all {
		checker.Suggest = suggest
		return list(w, checker, dirs)
	}
	findings, err := checker.Tree(root, root)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(baselineFile)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return err
	}
	allowed, err := prose.ParseBaseline(content)
	if err != nil {
		return fmt.Errorf("%s: %w", baselineFile, err)
	}
	if update {
		return write(w, allowed, prose.Count(findings), first)
	}
	return compare(w, allowed, findings)
}

func list(w io.Writer, checker *prose.Checker, dirs []string) error {
	if len(dirs) == 0 {
		dirs = []string{root}
	}
	counts := prose.Baseline{}
	for _, dir := range dirs {
		findings, err := checker.Tree(root, dir)
		if err != nil {
			return err
		}
		for _, f := range findings {
			fmt.Fprintln(w, f)
		}
		for key, n := range prose.Count(findings) {
			counts[key] += n
		}
	}
	fmt.Fprintln(w, summary(counts))
	return nil
}

func compare(w io.Writer, allowed prose.Baseline, findings []prose.Finding) error {
	now := prose.Count(findings)
	fmt.Fprintf(w, "%s; the baseline allows %s\n", summary(now), summary(allowed))
	above := allowed.Above(findings)
	if len(above) == 0 {
		return nil
	}
	for _, f := range above {
		fmt.Fprintln(w, f)
	}
	return errors.New("these files or packages have more findings than the baseline allows; rewrite the new texts and names as the findings say")
}

// write refuses a rise of the total only: a text that moves to another file takes its findings along.
func write(w io.Writer, allowed, now prose.Baseline, first bool) error {
	for _, rule := range []prose.Rule{prose.Word, prose.Length, prose.Name} {
		if !first && now.Total(rule) > allowed.Total(rule) {
			return fmt.Errorf("the number of findings of the rule %q rises from %d to %d; rewrite the new texts instead (without -update, the command prints them)",
				rule, allowed.Total(rule), now.Total(rule))
		}
	}
	fmt.Fprintln(w, summary(now))
	return os.WriteFile(baselineFile, now.Marshal(), 0o644)
}

func summary(b prose.Baseline) string {
	var parts []string
	for _, rule := range []prose.Rule{prose.Word, prose.Length, prose.Name} {
		parts = append(parts, fmt.Sprintf("%s %d", rule, b.Total(rule)))
	}
	return strings.Join(parts, ", ")
}
