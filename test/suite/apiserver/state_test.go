//go:build apiserver

package apiserver

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// unrelated are the resources that the cluster itself changes all the time.
var unrelated = []string{"events", "leases", "endpointslices", "endpoints", "componentstatuses"}

// state is every object of the cluster, by kind, namespace and name, with its resource version.
func (s *server) state(t *testing.T) map[string]string {
	t.Helper()
	var resources []string
	for _, name := range strings.Fields(s.run(t, "kubectl", "api-resources", "--verbs=list", "-o", "name")) {
		short, _, _ := strings.Cut(name, ".")
		if !slices.Contains(unrelated, short) {
			resources = append(resources, name)
		}
	}
	out := s.run(t, "kubectl", "get", strings.Join(resources, ","), "--all-namespaces", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	all := map[string]string{}
	for line := range strings.Lines(out) {
		at := strings.LastIndexByte(line, ' ')
		all[line[:at]] = strings.TrimSpace(line[at:])
	}
	return all
}

// names are the objects that only the first state has.
func only(in, notIn map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if _, there := notIn[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// changed are the objects that both states have, in different versions.
func changed(before, after map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if version, there := after[name]; there && version != before[name] {
			names = append(names, name)
		}
	}
	return names
}
