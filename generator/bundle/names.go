package bundle

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/charts"
)

// namesValue is whether a template of the chart may depend on a value. Then its text, or that of a helper that it includes, names the value. It may
// also name a part of it, or what it is part of. A rendering takes long where there are hundreds of values.
func namesValue(template string, at []string) bool {
	names, known := chartNames()[template]
	if !known || at[0] == "target" || at[0] == "plane" {
		return true
	}
	value := strings.Join(at, ".") + "."
	for name := range names {
		if strings.HasPrefix(value, name+".") || strings.HasPrefix(name+".", value) {
			return true
		}
	}
	return false
}

var (
	definition = regexp.MustCompile(`\{\{-? *define +"([^"]+)" *-?\}\}`)
	inclusion  = regexp.MustCompile(`include +"([^"]+)"`)
	namedValue = regexp.MustCompile(`(?:\.Values|\$v|\.values)((?:\.[A-Za-z][A-Za-z0-9]*)+)`)
)

// chartNames are the values that each template names, by file name. Helpers that only refuse values make nothing, and are left out.
var chartNames = sync.OnceValue(func() map[string]map[string]bool {
	texts := map[string]string{} // templates by file name, helpers by their own
	files, err := fs.Glob(charts.Files, "cinder-csi/templates/*")
	if err != nil {
		panic(err) // the pattern is ours
	}
	for _, file := range files {
		text, err := charts.Files.ReadFile(file)
		if err != nil {
			continue // a directory
		}
		at, last := 0, path.Base(file)
		for _, d := range definition.FindAllStringSubmatchIndex(string(text), -1) {
			texts[last] += string(text[at:d[0]])
			at, last = d[1], string(text[d[2]:d[3]])
		}
		texts[last] += string(text[at:])
	}
	all := map[string]map[string]bool{}
	for name := range texts {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		all[name] = map[string]bool{}
		seen := map[string]bool{}
		var visit func(string)
		visit = func(of string) {
			if seen[of] || strings.HasSuffix(of, "Gates") && strings.HasPrefix(of, "cinder-csi.") {
				return
			}
			seen[of] = true
			for _, m := range namedValue.FindAllStringSubmatch(texts[of], -1) {
				all[name][m[1][1:]] = true
			}
			for _, m := range inclusion.FindAllStringSubmatch(texts[of], -1) {
				visit(m[1])
			}
		}
		visit(name)
	}
	return all
})
