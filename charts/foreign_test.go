package charts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const foreignFile = "cinder-csi/foreign-keys.yaml"

// upstreamKeys are the keys of the chart openstack-cinder-csi.
func upstreamKeys(t *testing.T) []string {
	t.Helper()
	text := testfile.Text(t, "../generator/migrate/testdata/chart-keys.txt")
	var keys []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	if len(keys) < 100 {
		t.Fatalf("want at least 100 keys of upstream, found %d", len(keys))
	}
	return keys
}

// The refusal names our key to a person who comes from the chart of upstream. No value of such a person is without effect.
func TestEachKeyOfAnotherChartIsRefusedWithTheNameOfOurs(t *testing.T) {
	keys := upstreamKeys(t)
	for _, f := range ordered(t, foreignFile) {
		keys = append(keys, f.key)
	}
	table := ordered(t, foreignFile)
	for _, key := range keys {
		if key == "clusterID" {
			continue // ours has the name and the meaning
		}
		var ours any
		for above := key; above != "" && ours == nil; above = above[:max(strings.LastIndex(above, "."), 0)] {
			ours = table.at(above)
		}
		if ours == nil {
			t.Errorf("%s has no row for %s", foreignFile, key)
			continue
		}
		for name, value := range map[string]any{"text": "x", "object": map[string]any{"deeper": "x"}} {
			_, err := renderFor(t, anyRelease, set(map[string]any{}, key, value), true)
			if want := fmt.Sprintf(": %s", ours); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with a value of kind %s: want a refusal with %q, got %v", key, name, want, err)
			}
		}
	}
}

func TestAllKeysOfOtherChartsAreNamedInOneRefusal(t *testing.T) {
	_, err := render(t, parse(t, "csi: {plugin: {image: {tag: v1.36.0}}, attacher: {colour: red}}\nnodeSelector: {a: b}"))
	want := []string{
		"csi.plugin.image: images.controller.driver, images.node.driver", "csi.attacher.colour: none", "nodeSelector: controller.nodeSelector, node.nodeSelector",
		"cinder-csi-generator import",
	}
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q, got %v", text, err)
		}
	}
}

func TestOurNamesForTheKeysOfOtherChartsExist(t *testing.T) {
	values := parse(t, readFile(t, "values.yaml"))
	var tops []string
	for _, f := range ordered(t, foreignFile) {
		top, _, _ := strings.Cut(f.key, ".")
		tops = append(tops, top)
		if _, ours := values[top]; ours {
			t.Errorf("%s: %s is a key of this chart", foreignFile, f.key)
		}
		keys, remark, _ := strings.Cut(f.value.(string), ";")
		if keys == "none" && remark != "" {
			continue
		}
		for key := range strings.SplitSeq(keys, ", ") {
			if at(values, key) == nil {
				t.Errorf("%s: for %s it names %q, which values.yaml does not have", foreignFile, f.key, key)
			}
		}
	}
	slices.Sort(tops)
	gate := readFile(t, "templates/_foreign.tpl")
	_, gate, _ = strings.Cut(gate, "pick .Values")
	gate, _, _ = strings.Cut(gate, "-}}")
	var picked []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(gate, -1) {
		picked = append(picked, m[1])
	}
	if diff := cmp.Diff(slices.Compact(tops), picked); diff != "" {
		t.Errorf("the template looks for other keys than %s has (-file +template):\n%s", foreignFile, diff)
	}
}
