package imports_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rules are keyed by a package or a subtree ("driver/host/..."); see mayImport.
type rules map[string][]string

// libraryRule names the packages that may import a library. Both lists have packages and subtrees.
type libraryRule struct{ library, importers []string }

// pkg is a package: its path in this module, the packages that it imports directly without those of tests, and all that it reaches.
type pkg struct {
	path          string
	imports, deps []string
}

// covers says whether a pattern is that path, or a subtree with it.
func covers(pattern, path string) bool {
	dir, subtree := strings.CutSuffix(pattern, "/...")
	return path == dir || subtree && strings.HasPrefix(path, dir+"/")
}

func anyCovers(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, path) })
}

// keyOf is the key of a package: the package itself, or the longest subtree that has it. It is empty if there is none.
func (r rules) keyOf(path string) string {
	if _, exact := r[path]; exact {
		return path
	}
	key := ""
	for pattern := range r {
		if len(pattern) > len(key) && covers(pattern, path) {
			key = pattern
		}
	}
	return key
}

// check compares packages with the rules. It reports a package without a rule, an import that no rule allows, a rule for no package, and
// an allowance that no package uses.
func (r rules) check(packages []pkg) []string {
	var problems []string
	used := map[string]map[string]bool{} // by key, the allowances that a package used
	for _, p := range packages {
		key := r.keyOf(p.path)
		if key == "" {
			problems = append(problems, p.path+" has no import rule; add one to mayImport")
			continue
		}
		if used[key] == nil {
			used[key] = map[string]bool{}
		}
		for _, imported := range p.imports {
			other, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			allowed := false
			for _, pattern := range r[key] {
				if covers(pattern, other) {
					allowed, used[key][pattern] = true, true
				}
			}
			if !allowed {
				problems = append(problems, fmt.Sprintf("%s must not import %s (its rule %q allows: %s)", p.path, other, key, strings.Join(r[key], ", ")))
			}
		}
	}
	return append(problems, r.unused(used)...)
}

func (r rules) unused(used map[string]map[string]bool) []string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if used[key] == nil {
			problems = append(problems, fmt.Sprintf("mayImport has a rule for %s, which is no package; remove it", key))
			continue
		}
		for _, pattern := range r[key] {
			if !used[key][pattern] {
				problems = append(problems, fmt.Sprintf("the rule of %s allows %s, which it does not import; remove it", key, pattern))
			}
		}
	}
	return problems
}

// checkLibraries reports an import of a library that its rule does not allow, and an importer that does not import the library.
func checkLibraries(all []libraryRule, packages []pkg) []string {
	var problems []string
	for _, rule := range all {
		used := map[string]bool{}
		for _, p := range packages {
			if covers("test/...", p.path) || !slices.ContainsFunc(p.imports, func(imported string) bool { return anyCovers(rule.library, imported) }) {
				continue
			}
			for _, importer := range rule.importers {
				if covers(importer, p.path) {
					used[importer] = true
				}
			}
			if !anyCovers(rule.importers, p.path) {
				problems = append(problems, fmt.Sprintf("%s imports %s, which only %s may import", p.path, rule.library[0], strings.Join(rule.importers, ", ")))
			}
		}
		for _, importer := range rule.importers {
			if !used[importer] {
				problems = append(problems, fmt.Sprintf("%s may import %s and does not; remove it from libraryImporters", importer, rule.library[0]))
			}
		}
	}
	return problems
}

// checkReach reports what a list of packages reaches, directly or through others, of what it must not reach.
func checkReach(paths, never []string, packages []pkg) []string {
	var problems []string
	for _, pattern := range paths {
		found := false
		for _, p := range packages {
			if !covers(pattern, p.path) {
				continue
			}
			found = true
			for _, dep := range p.deps {
				if anyCovers(never, strings.TrimPrefix(dep, module)) {
					problems = append(problems, fmt.Sprintf("%s reaches %s", p.path, dep))
				}
			}
		}
		if !found {
			problems = append(problems, pattern+" is no package; correct the list")
		}
	}
	return problems
}
