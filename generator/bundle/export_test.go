package bundle

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// Hostile gives each text of the values hostile texts, and lists the places where another thing arrives.
func Hostile(r plan.Result, chart Chart, texts []string, taken, refused *int) (found []string, err error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	for _, p := range planes {
		values := p.values()
		was, err := p.templates(chart, plain(values).(map[string]any), false)
		if err != nil {
			return nil, err
		}
		walk(values, nil, func(at []string, l leaf) {
			if _, isText := l.value.(string); !isText || len(l.refs) == 0 || enums[strings.Join(at, ".")] != nil {
				return
			}
			var named []string
			for file := range was {
				if namesValue(file, at) {
					named = append(named, file)
				}
			}
			for _, text := range texts {
				is, err := p.templates(chart, plain(replaced(values, at, leaf{value: text})).(map[string]any), true, named...)
				if err != nil {
					*refused++
					continue
				}
				*taken++
				for file, rendered := range is {
					if rendered != was[file] {
						found = append(found, arrived(strings.Join(at, "."), text, file, was[file], rendered)...)
					}
				}
			}
		})
	}
	return found, nil
}

// arrived lists the places of a template that another text has changed, and that do not hold it as a text.
func arrived(at, text, file, was, is string) (found []string) {
	now, err := placesOf(is)
	if err != nil {
		return []string{fmt.Sprintf("%s = %q: %s is no YAML: %v", at, text, file, err)}
	}
	before, _ := placesOf(was)
	for key, of := range now {
		for where, q := range of {
			if b := before[key][where]; b == nil || reflect.DeepEqual(b.value, q.value) || strings.HasSuffix(where, "config-hash") {
				continue
			}
			if at == "credentials.caKey" && strings.HasSuffix(where, ".optional") {
				continue // whether there is a key decides this one too
			}
			if s, isText := q.value.(string); !isText || !strings.Contains(s, strings.TrimSpace(text)) {
				found = append(found, fmt.Sprintf("%s = %q: %s %s is %T %v", at, text, key, where, q.value, q.value))
			}
		}
	}
	return found
}

// Unnamed lists the values whose change changes a template that does not name them.
func Unnamed(r plan.Result, chart Chart) (found []string, err error) {
	planes, err := planesOf(r)
	if err != nil {
		return nil, err
	}
	for _, p := range planes {
		values := p.values()
		was, err := p.templates(chart, plain(values).(map[string]any), false)
		if err != nil {
			return nil, err
		}
		walk(values, nil, func(at []string, l leaf) {
			for _, others := range alternatives(at, l.value) {
				i := &planeIndex{p: p, values: p.values}
				for file, text := range i.first(chart, values, at, others, nil) {
					if text != was[file] && !namesValue(file, at) {
						found = append(found, p.name+": "+file+" does not name "+strings.Join(at, "."))
					}
				}
			}
		})
	}
	return found, nil
}
