package docs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// sameFigures are the figures of the text of a page, and the place that they come from. Each pair of expressions finds the same figures in the same
// order. A source may have more digits.
var sameFigures = []struct{ page, says, source, has string }{
	{"../README.md", `\*\*Status:\*\* ([0-9.]+), not released`, "../charts/cinder-csi/Chart.yaml", `(?m)^version: ([0-9.]+)$`},
	{"../README.md", `Kubernetes from ([0-9.]+), OpenStack from (\w+)`, "reference/compatibility.md", `(?s)\| Kubernetes \| ([0-9.]+) \|.*\| Cinder \| microversion 3\.27 \((\w+)\) \|`},
	{"../README.md", `ran\]\([^)]*\) on Kubernetes ([0-9.]+) to ([0-9.]+)`, "reference/compatibility.md", `scenarios passed on ([0-9]+\.[0-9]+)\.[0-9]+, [0-9.]+ and ([0-9]+\.[0-9]+)\.[0-9]+,`},
	{"../README.md", `away for (\w+) minutes`, "../test/suite/cluster/RESULTS.md", `the cloud is unreachable for (\w+) minutes`},
	{"../README.md", `up to ([0-9,]+) volumes sends`, "reference/sizing.md", `idle, up to ([0-9,]+) volumes`},
	{"../README.md", `each of (\w+) volumes that live`, "explanation/performance.md", `(?i)- (\w+) volumes at once live and go`},
	{"reference/compatibility.md", `\| Kubernetes \| ([0-9.]+) \|`, "../charts/cinder-csi/Chart.yaml", `kubeVersion: ">= ([0-9]+\.[0-9]+)\.0-0"`},
	{"reference/compatibility.md", `growth while a pod uses the volume \| Cinder ([0-9.]+)`, "../driver/openstack/requests.go", `Cinder ([0-9.]+) extends attached volumes`},
	{
		"reference/compatibility.md", `Cinder ([0-9.]+); ([0-9.]+); ([0-9.]+) \|`,
		"../driver/openstack/requests.go", `(?s)Cinder ([0-9.]+) gives backups metadata.*Cinder ([0-9.]+) creates a volume from a backup.*Cinder ([0-9.]+) creates a backup in a zone`,
	},
	{"reference/compatibility.md", `requests for changed volumes only \| Cinder ([0-9.]+)`, "../driver/openstack/requests.go", `Cinder ([0-9.]+) compares times`},
	{"reference/compatibility.md", `without .force-create. \| Cinder ([0-9.]+)`, "../driver/openstack/requests.go", `Cinder ([0-9.]+) creates snapshots of volumes in use`},
	{"reference/compatibility.md", `multiattach \| Nova ([0-9.]+)`, "../driver/openstack/requests.go", `Nova ([0-9.]+) attaches a multiattach volume`},
	{
		"how-to/start-pods-faster.md", `claim to running pod \| ([0-9.]+) s \| ([0-9.]+) s`,
		"../test/suite/cluster/RESULTS.md", `(?s)claim to running pod \| this driver \| \d+ \| ([0-9.]+) .*claim to running pod \| this driver, kubelet 2 s \| \d+ \| ([0-9.]+) `,
	},
	{
		"how-to/start-pods-faster.md", `pod moved to another node \| ([0-9.]+) s \| ([0-9.]+) s`,
		"../test/suite/cluster/RESULTS.md", `(?s)pod moved to another node \| this driver \| \d+ \| ([0-9.]+) .*pod moved to another node \| this driver, kubelet 2 s \| \d+ \| ([0-9.]+) `,
	},
	{"explanation/performance.md", `live and go in (\d+) s on a cloud of two cores, with ([0-9.]+) calls`, "../test/suite/openstack/RESULTS.md", `live and go in (\d+) to \d+ s with [0-9.]+ to ([0-9.]+) calls`},
	{"explanation/performance.md", `plugin takes (\d+) to (\d+) s and (\d+) to (\d+) calls`, "../test/suite/openstack/RESULTS.md", `plugin in (\d+) to (\d+) s with (\d+) to (\d+) calls`},
	{"explanation/reliability.md", `Each of (\d+) faults`, "../test/suite/histories/RESULTS.md", `injects each of (\d+) faults`},
	{
		"explanation/reliability.md", `at each of (\d+) requests made ([0-9,]+) histories, and random faults made ([0-9,]+)`,
		"../test/suite/histories/RESULTS.md", `(?s)with (\d+) requests, and injects.*These are ([0-9,]+) histories.*It had ([0-9,]+) histories`,
	},
	{"how-to/monitor.md", `\| (\d+) \| (\d+) \| health, for kubelet`, "../charts/cinder-csi/values.yaml", "`auto`: (\\d+) to \\d+; on OpenShift (\\d+) to"},
	{"reference/sizing.md", `at most (\d+) reads\s+and (\d+) writes a second`, "reference/driver.md", "(?s)`--openstack-reads-per-second` \\| `(\\d+)`.*`--openstack-writes-per-second` \\| `(\\d+)`"},
	{"how-to/upgrade.md", `RPCs in progress, for (\d+) s at most`, "reference/driver.md", "`--drain-timeout` \\| `(\\d+)s`"},
	{"explanation/security.md", `an error after ([0-9,]+) pages or ([0-9,]+) items`, "../internal/paging/paging.go", `(?s)maxPages = (\d+).*MaxItems = ([0-9_]+)`},
	{"../README.md", `its inventory, (\w+) bundles`, "../test/suite/demo/bundles.go", `and the (\w+) bundles`},
	{"explanation/performance.md", `at least (\d+) ms`, "../driver/openstack/status/waiter.go", `minInterval += (\d+) \* time.Millisecond`},
	{"explanation/node.md", "`pc` with a PCI bridge \\| (\\d+)", "../driver/host/NODE.md", "`pc` with a PCI bridge \\| (\\d+)"},
	{"tutorial/first-volume.md", `Kubernetes ([0-9.]+) or later`, "../charts/cinder-csi/Chart.yaml", `kubeVersion: ">= ([0-9]+\.[0-9]+)\.0-0"`},
	{"reference/compatibility.md", `Kubernetes ([0-9.]+), API server without nodes`, "../test/bed/cluster/programs/go.mod", `k8s\.io/kubernetes v([0-9.]+)`},
	{"reference/compatibility.md", `of the nodes \| Kubernetes ([0-9.]+) \|`, "how-to/node-lifecycle.md", `The hook needs Kubernetes ([0-9.]+),`},
	{"how-to/node-lifecycle.md", `grace period of (\d+) s`, "../charts/cinder-csi/templates/node.yaml", `terminationGracePeriodSeconds: (\d+)`},
	{"explanation/security.md", `health about ([0-9,]+);`, "../driver/provision/health.go", `mostServers = \d+, (\d+)`},
	{"reference/sizing.md", `([0-9.]+) in virtual time`, "../test/suite/bench/RESULTS.md", `(?s)## 1 volume on .*?whole life of a volume: ([0-9.]+) calls`},
	{"reference/sizing.md", `50 volumes at once on two servers \| ([0-9.]+) for`, "../test/suite/openstack/RESULTS.md", `calls for one volume \| [0-9.]+, ([0-9.]+) \| [0-9.]+, [0-9.]+ \|`},
	{"reference/sizing.md", `1,000 volumes at once on 50 servers \| ([0-9.]+) for`, "../test/suite/bench/RESULTS.md", `(?s)## 1000 volumes on 50 servers.*?whole life of a volume: ([0-9.]+) calls`},
	{"../README.md", `Its (\w+) controller pods`, "reference/costs.md", `there are (\w+) controller pods`},
}

// plain is a figure without what separates its thousands.
func plain(figure string) string { return strings.NewReplacer(",", "", "_", "").Replace(figure) }

func TestTheFiguresOfThePagesAreThoseOfTheirSources(t *testing.T) {
	for _, f := range sameFigures {
		says := regexp.MustCompile(f.says).FindStringSubmatch(testfile.Text(t, f.page))
		has := regexp.MustCompile(f.has).FindStringSubmatch(testfile.Text(t, f.source))
		if says == nil || has == nil || len(says) != len(has) || len(says) < 2 {
			t.Errorf("%s: %q finds %q; %s: %q finds %q", f.page, f.says, says, f.source, f.has, has)
			continue
		}
		for i, figure := range says[1:] {
			if !strings.EqualFold(plain(figure), plain(has[i+1])) {
				t.Errorf("%s says %s, and %s has %s: %s", f.page, figure, f.source, has[i+1], says[0])
			}
		}
	}
}

// The tags of the page are those of the chart.
func TestTheSidecarsOfThePagesAreThoseOfTheChart(t *testing.T) {
	tags := map[string]string{}
	for _, found := range regexp.MustCompile(`repository: sig-storage/([a-z-]+), tag: (v[0-9.]+)`).FindAllStringSubmatch(testfile.Text(t, "../charts/cinder-csi/values.yaml"), -1) {
		tags[found[1]] = found[2]
	}
	if len(tags) < 6 {
		t.Fatalf("values.yaml has the tags %v", tags)
	}
	table := strings.NewReplacer("external-", "csi-").Replace(testfile.Text(t, "reference/compatibility.md"))
	for name, tag := range tags {
		if name = strings.TrimPrefix(name, "csi-node-"); !regexp.MustCompile(`\| (?:node-)?` + name + `[a-z -]* \| ` + regexp.QuoteMeta(tag) + ` \|`).MatchString(table) {
			t.Errorf("reference/compatibility.md does not have %s of %s", tag, name)
		}
	}
	for page, text := range howTos(t) {
		for _, found := range regexp.MustCompile(`sig-storage/([a-z-]+):(v[0-9.]+)`).FindAllStringSubmatch(text, -1) {
			if tags[found[1]] != "" && tags[found[1]] != strings.TrimSuffix(found[2], ".") {
				t.Errorf("docs/how-to/%s has %s, and the chart %s", page, found[0], tags[found[1]])
			}
		}
	}
	snapshotter := tags["csi-snapshotter"]
	for _, page := range []string{"tutorial/first-volume.md", "how-to/install-without-internet.md"} {
		refs := regexp.MustCompile(`\?ref=(v[0-9.]+)`).FindAllStringSubmatch(testfile.Text(t, page), -1)
		if len(refs) == 0 || slices.ContainsFunc(refs, func(ref []string) bool { return ref[1] != snapshotter }) {
			t.Errorf("%s has the snapshot CRDs of %v, and the chart the snapshotter %s", page, refs, snapshotter)
		}
	}
}

// The kills of the page are the sums of the record.
func TestTheKillsOfThePageAreThoseOfTheRecord(t *testing.T) {
	record := testfile.Text(t, "../test/suite/nodekills/RESULTS.md")
	calls := regexp.MustCompile(`(?s)\| call \| system calls \| kills \|.*?\*\*all\*\* \| \*\*\d+\*\* \| \*\*(\d+)\*\*`).FindStringSubmatch(record)
	tools := regexp.MustCompile(`(?s)\| tool at work \|.*?\*\*all\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\*`).FindStringSubmatch(record)
	if calls == nil || tools == nil {
		t.Fatalf("the record has %q and %q", calls, tools)
	}
	sum := 0
	for _, figure := range []string{calls[1], tools[1], tools[2]} {
		kills, _ := strconv.Atoi(figure)
		sum += kills
	}
	if want := "In " + strconv.Itoa(sum) + " kills nothing was lost"; !strings.Contains(testfile.Text(t, "explanation/reliability.md"), want) {
		t.Errorf("explanation/reliability.md: want %q", want)
	}
}

func TestThePagesCountTheAlerts(t *testing.T) {
	alerts := strconv.Itoa(strings.Count(alertSections(t), "### CinderCSI"))
	for page, want := range map[string]string{"../CHANGELOG.md": "[" + alerts + " alerts with a section each]", "explanation/comparison.md": "[" + alerts + ", each with a section]"} {
		if !strings.Contains(testfile.Text(t, page), want) {
			t.Errorf("%s: want %q", page, want)
		}
	}
}

// The last line of generate, for the configuration of the tutorial.
func TestTheTutorialShowsHowManyFilesABundleHas(t *testing.T) {
	tutorial := testfile.Text(t, "tutorial/first-volume.md")
	configuration := regexp.MustCompile("(?s)```yaml\n(apiVersion: generator.*?)```").FindStringSubmatch(tutorial)
	if configuration == nil {
		t.Fatal("the tutorial has no configuration")
	}
	_, messages := generated(t, "vanilla", configuration[1])
	said := regexp.MustCompile(`: (\d+ created; \d+ files in all)\n`).FindStringSubmatch(messages)
	if said == nil || !strings.Contains(tutorial, "\ndeploy/cinder-csi: "+said[1]+"\n") {
		t.Errorf("tutorial/first-volume.md: want the line of generate, %q, of %s", said, messages)
	}
}
