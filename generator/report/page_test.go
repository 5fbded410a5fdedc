package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func planPage(t *testing.T, plan v1alpha1.Plan, inv v1alpha1.Inventory, warnings ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := PlanPage(&out, plan, inv, warnings); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func inventoryPage(t *testing.T, inv v1alpha1.Inventory) string {
	t.Helper()
	var out bytes.Buffer
	if err := InventoryPage(&out, inv, "v1"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// hostile are texts that would become markup, script or style in a page that does not escape them.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><b>x`, `javascript:alert(1)`,
	`</td></table><h1>x`, `{{.Title}}`, "a\u202eb\x1b[2J", `expression(alert(1))`, `--><iframe src=//x>`, "`${x}`",
}

func hostileInventory(text string) v1alpha1.Inventory {
	zones := known([]v1alpha1.Zone{{Name: text, Available: true}})
	return v1alpha1.Inventory{
		Cloud:             v1alpha1.Cloud{AuthURL: text, Region: text, ProjectID: text},
		Services:          known(map[string]v1alpha1.Service{text: {Present: true, MinMicroversion: text, MaxMicroversion: text, Endpoint: text}}),
		Zones:             v1alpha1.Zones{Compute: zones, Volume: zones},
		VolumeTypes:       known([]v1alpha1.VolumeType{{ID: text, Name: text, Description: text, Zones: []string{text}}}),
		DefaultVolumeType: known(text),
		Quota:             known(map[string]v1alpha1.Quota{text: {Limit: 1}, "gigabytes_" + text: {Limit: 9, InUse: 9}}),
		Limits:            v1alpha1.Fact[v1alpha1.Limits]{State: v1alpha1.Denied, Reason: text},
	}
}

func hostilePlan(text string) v1alpha1.Plan {
	return v1alpha1.Plan{
		Generator: text, Target: v1alpha1.Target(text),
		Config: v1alpha1.Spec{Topology: v1alpha1.Topology{ZoneMap: map[string]string{text: text}}},
		Decisions: []v1alpha1.Decision{
			{ID: classID + text, Value: map[string]any{"parameters": map[string]string{"type": text}, text: text}, Reason: text, Facts: []v1alpha1.NamedFact{{Name: text}}, Source: text},
			{ID: text, Value: text + "\n" + text, Reason: text, Source: text},
		},
	}
}

var (
	tag       = regexp.MustCompile(`<(/?[a-z][a-z0-9]*)`)
	attribute = regexp.MustCompile(` ([a-z:-]+)=`)
	markup    = regexp.MustCompile(`<[^>]*>`)
)

// structure is every tag of a page with its attributes' names.
func structure(page string) []string {
	var all []string
	for _, m := range markup.FindAllString(page, -1) {
		name := tag.FindString(m)
		// What an attribute holds is quoted, and html/template writes no quote inside of it.
		bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(m, `""`)
		for _, a := range attribute.FindAllStringSubmatch(bare, -1) {
			name += " " + a[1]
		}
		all = append(all, name)
	}
	return all
}

func TestNoNameOfACloudBecomesMarkup(t *testing.T) {
	plain := structure(planPage(t, hostilePlan("x"), hostileInventory("x"), "x"))
	for _, text := range hostile {
		page := planPage(t, hostilePlan(text), hostileInventory(text), text)
		if diff := cmp.Diff(plain, structure(page)); diff != "" {
			t.Errorf("%q changes the structure of the page (-want +got):\n%s", text, diff)
		}
		if strings.ContainsAny(page, "\u202e\x1b") {
			t.Errorf("%q: the page has a character that reorders or steers", text)
		}
		if strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%q: html/template replaced a value", text)
		}
	}
}

func TestAPageLoadsNothingAndRunsNothing(t *testing.T) {
	for name, page := range map[string]string{
		"plan":      planPage(t, hostilePlan("https://example.com/x.js"), hostileInventory("https://example.com/x.js")),
		"inventory": inventoryPage(t, hostileInventory("https://example.com/x.js")),
	} {
		for _, found := range regexp.MustCompile(`(?i)<script|<iframe|<object|<embed|@import|url\(| on[a-z]+="|(?:src|href|action|srcset)="[^"]*"`).FindAllString(page, -1) {
			if value, ok := strings.CutPrefix(found, `href="`); ok && (strings.HasPrefix(value, "#") || value == `data:,"`) {
				continue
			}
			t.Errorf("%s: the page has %s", name, found)
		}
		if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:;`) {
			t.Errorf("%s: want a content security policy that allows nothing but the style and the icon", name)
		}
	}
}

func TestEveryTableHasACaptionAndEverySectionAHeading(t *testing.T) {
	page := planPage(t, hostilePlan("x"), hostileInventory("x"), "a warning")
	for _, c := range []struct{ what, begins, holds string }{{"table", "<table", "<caption"}, {"section", "<section", "<h2"}} {
		parts := strings.Split(page, c.begins)
		if len(parts) < 5 {
			t.Errorf("want several of %s, got %d", c.what, len(parts)-1)
		}
		for _, part := range parts[1:] {
			if head := part[:min(len(part), 400)]; !strings.Contains(head, c.holds) {
				t.Errorf("want a %s with %s>, got %s", c.what, c.holds, head)
			}
		}
	}
}

func TestThePageOfASimulatedCloudSaysSo(t *testing.T) {
	const says = "Simulated cloud."
	if page := inventoryPage(t, v1alpha1.Inventory{Simulated: true}); !strings.Contains(page, says) {
		t.Error("want a page that says that the cloud is simulated")
	}
	if page := planPage(t, v1alpha1.Plan{Simulated: true}, v1alpha1.Inventory{}); !strings.Contains(page, says) {
		t.Error("want a page that says that the cloud is simulated")
	}
	if page := inventoryPage(t, v1alpha1.Inventory{}); strings.Contains(page, says) {
		t.Error("want nothing about a simulation on the page of a real cloud")
	}
}

func TestThePageOfAnInventorySaysWhatIsKnownOfBackups(t *testing.T) {
	for want, fact := range map[string]v1alpha1.Fact[v1alpha1.Backup]{
		"only an administrator can see it": known(v1alpha1.Backup{}),
		"<bdi>down</bdi>":                  known(v1alpha1.Backup{Service: known("down")}),
		"has a finished backup":            known(v1alpha1.Backup{Made: true}),
	} {
		if page := inventoryPage(t, v1alpha1.Inventory{Backup: fact}); !strings.Contains(page, want) {
			t.Errorf("want %q on the page", want)
		}
	}
	if page := inventoryPage(t, v1alpha1.Inventory{}); strings.Contains(page, "Backup service") {
		t.Error("want nothing about backups where nobody asked")
	}
}

func TestTheSamePlanGivesTheSameBytes(t *testing.T) {
	want := planPage(t, hostilePlan("a"), oddInventory(), "w")
	for range 50 {
		if planPage(t, hostilePlan("a"), oddInventory(), "w") != want {
			t.Fatal("want the same bytes")
		}
	}
}

func TestAPageShowsWhereAVolumeTypeCanBeUsed(t *testing.T) {
	column := func(volume string, compute, served bool) zoneColumn {
		return zoneColumn{Name: "z", volume: volume, compute: compute, served: served}
	}
	for name, c := range map[string]struct {
		volumeType v1alpha1.VolumeType
		zone       zoneColumn
		want       symbol
	}{
		"both services":              {v1alpha1.VolumeType{}, column("z", true, true), bothHere},
		"no servers":                 {v1alpha1.VolumeType{}, column("z", false, true), volumesOnly},
		"no volumes":                 {v1alpha1.VolumeType{}, column("z", true, false), serversOnly},
		"another zone":               {v1alpha1.VolumeType{Zones: []string{"y"}}, column("z", true, true), notOffered},
		"by the map":                 {v1alpha1.VolumeType{Zones: []string{"y"}}, column("y", true, true), bothHere},
		"an old Cinder says no zone": {v1alpha1.VolumeType{Specs: v1alpha1.Unsupported}, column("z", true, true), notKnown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := symbolOf(c.volumeType, c.zone); got != c.want {
				t.Errorf("want %v, got %v", c.want, got)
			}
		})
	}
}

func TestAQuotaBarSaysHowFullItIs(t *testing.T) {
	for _, c := range []struct {
		row  quotaRow
		want quotaBar
	}{
		{quotaRow{"volumes", 200, 100, true}, quotaBar{Name: "Volumes", Used: "100", Limit: "200", Level: "low", Percent: 50, Width: 50, Drawn: true}},
		{quotaRow{"gigabytes_fast", 10, 8, true}, quotaBar{Name: "Storage (GiB) of type fast", Used: "8", Limit: "10", Level: "high", Word: "high", Percent: 80, Width: 80, Drawn: true}},
		{quotaRow{"snapshots", 10, 15, true}, quotaBar{Name: "Snapshots", Used: "15", Limit: "10", Level: "full", Word: "full or nearly full", Percent: 150, Width: 100, Drawn: true}},
		{quotaRow{"backups", 0, 0, true}, quotaBar{Name: "Backups", Used: "0", Limit: "0", Level: "low", Word: "none is allowed"}},
		{quotaRow{"groups", -1, 2, true}, quotaBar{Name: "Volume groups", Used: "2", Limit: "unlimited", Level: "low", Word: "no limit"}},
		{quotaRow{"volumes", 200, 0, false}, quotaBar{Name: "Volumes", Used: "not known", Limit: "200", Level: "low", Word: "use not known"}},
	} {
		if diff := cmp.Diff(c.want, bar(c.row)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.row, diff)
		}
	}
}

func TestAPageFoldsWhatIsTooManyToRead(t *testing.T) {
	var inv v1alpha1.Inventory
	var plan v1alpha1.Plan
	inv.VolumeTypes = known([]v1alpha1.VolumeType{})
	for i := range 2000 {
		name := fmt.Sprintf("type-%04d", i)
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: name, Name: name})
		plan.Decisions = append(plan.Decisions, v1alpha1.Decision{ID: classID + name, Value: map[string]any{"parameters": map[string]any{"type": name}}, Source: "inferred"})
	}
	plan.Decisions = append(plan.Decisions, v1alpha1.Decision{ID: "topology.enabled", Value: true, Source: "inferred"})
	page := planPage(t, plan, inv)
	shown, folded, found := strings.Cut(page, "<details>")
	if !found || !strings.Contains(shown, "topology.enabled") || strings.Contains(shown, "type-0020") || !strings.Contains(folded, "Show 1,981 more decisions") {
		t.Error("want a screen of decisions, those beside the classes first, and a fold with the others")
	}
	if _, types, _ := strings.Cut(page, `id="types"`); strings.Contains(strings.SplitN(types, "<details>", 2)[0], "type-0020") {
		t.Error("want a screen of volume types, and a fold with the others")
	}
	for _, want := range []string{"Show 1,980 more volume types", "storageClass.type-1999"} {
		if !strings.Contains(page, want) {
			t.Errorf("want %q in the page", want)
		}
	}
}
