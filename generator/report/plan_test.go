package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func decided() v1alpha1.Plan {
	return v1alpha1.Plan{Decisions: []v1alpha1.Decision{
		{ID: "target.openshift", Value: false, Source: "config"},
		{ID: "driver.logLevel", Value: 2, Source: "default"},
		{ID: "topology.enabled", Value: true, Source: "inferred"},
		{ID: "defaultClass", Value: "fast", Source: "inferred"},
	}}
}

func TestAPlanCountsWhoDecidedAndBeginsWithTheCloud(t *testing.T) {
	for part, want := range map[string]string{
		"": "topology.enabled defaultClass target.openshift driver.logLevel", FromCloud: "topology.enabled defaultClass", FromConfig: "target.openshift", FromDefault: "driver.logLevel",
	} {
		for _, columns := range []int{Width, 200} {
			var out bytes.Buffer
			if err := Plan(&out, decided(), part, columns); err != nil {
				t.Fatal(err)
			}
			first, rest, _ := strings.Cut(out.String(), "\n")
			if first != "4 decisions: 2 by the cloud, 1 by the configuration, 1 by default" {
				t.Errorf("want a first line that counts, got %q", first)
			}
			var got []string
			for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == ':' || r == '\n' }) {
				for _, d := range decided().Decisions {
					if word == d.ID {
						got = append(got, word)
					}
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("part %q at %d columns: want %s, got %v", part, columns, want, got)
			}
		}
	}
}

func TestAPageBeginsWithWhatTheCloudDecided(t *testing.T) {
	page := planPage(t, decided(), v1alpha1.Inventory{})
	at := -1
	for _, want := range []string{"2 by the cloud", "topology.enabled", "defaultClass", `id="types"`, `id="quotas"`, "target.openshift", "driver.logLevel"} {
		next := strings.Index(page, ">"+want+"<")
		if next < 0 {
			next = strings.Index(page, want)
		}
		if next <= at {
			t.Errorf("want %q behind the others, got it at %d after %d", want, next, at)
		}
		at = next
	}
}
