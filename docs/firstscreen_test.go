package docs

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	figure  = regexp.MustCompile(`\d+(?:\.\d+)?`)
	aBundle = regexp.MustCompile(`(?m)^\| (none, .vanilla.|.size: \w+.) \| (\d+) \|[^|]*\|[^|]*?(?:(\d+)Mi)? \|[^|]*?(?:(\d+)Mi)? \|$`)
)

// firstScreen says where each figure of the table on the first screen of README.md comes from, by the beginning of its row. Each expression has one
// group, in the order of the figures in the row, and is searched in the section that the row links to.
var firstScreen = map[string][]string{
	"pods ready after the cloud": {
		`waiting pods were ready in ([0-9.]+) s`, `Cloud unreachable for .* pods with new claims ready in ([0-9.]+) s`,
	},
	"a pod more than a node has room": nil,
	"what the driver adds": {
		driverPart("claim to running pod", "upstream"), driverPart("pod moved to another node", "upstream"),
		driverPart("claim to running pod", "this driver"), driverPart("pod moved to another node", "this driver"),
	},
	"calls for each of fifty volumes": {
		`\| calls for one volume \| ([0-9.]+), [0-9.]+ \| [0-9.]+, [0-9.]+ \|`, `\| calls for one volume \| [0-9.]+, ([0-9.]+) \| [0-9.]+, [0-9.]+ \|`,
	},
	"longest pause of a writing pod": {
		`Longest pause of a writing pod during the swap ([0-9.]+) s`, `Longest pause of a writing pod during the way back ([0-9.]+) s`,
	},
}

// driverPart is the column "driver" of a row in the table of where the time goes.
func driverPart(flow, driver string) string {
	return `\| ` + flow + ` \| ` + driver + ` \| \d+ \| [^|]* \| [0-9.]+ \| ([0-9.]+) \|`
}

func TestTheFiguresOfTheFirstScreenAreThoseOfTheirPages(t *testing.T) {
	const heading, rule = "\n## Why, if you have upstream's plugin\n", "| --- | --- | --- |\n"
	_, section, found := strings.Cut(testfile.Text(t, "../README.md"), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	_, rows, table := strings.Cut(section, rule)
	if !found || !table {
		t.Fatalf("README.md has no table of three columns after %q", heading)
	}
	seen := 0
	for row := range strings.Lines(rows) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		link := inlineLink.FindStringSubmatch(row)
		if len(cells) != 3 || link == nil {
			t.Errorf("README.md: want three cells and a link, got %s", row)
			continue
		}
		for begin, sources := range firstScreen {
			if strings.HasPrefix(strings.TrimSpace(cells[0]), begin) {
				seen++
				compareFigures(t, row, cells[1]+" "+inlineLink.ReplaceAllString(cells[2], "]"), sectionOf(t, link[1]), sources)
			}
		}
	}
	if rows := strings.Count(section, "\n|") - 2; seen != rows || seen != len(firstScreen) {
		t.Errorf("README.md has %d rows, and firstScreen has sources for %d, of which %d were found", rows, len(firstScreen), seen)
	}
}

// compareFigures compares the figures of a row with those of a page, which may have more digits.
func compareFigures(t *testing.T, row, claims, page string, sources []string) {
	t.Helper()
	claimed := figure.FindAllString(claims, -1)
	if len(claimed) != len(sources) {
		t.Errorf("README.md: want %d figures, got %s", len(sources), row)
		return
	}
	for i, source := range sources {
		found := regexp.MustCompile(source).FindStringSubmatch(page)
		if found == nil {
			t.Errorf("the page has no %s, for: %s", source, row)
			continue
		}
		_, fraction, _ := strings.Cut(claimed[i], ".")
		measured, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if rounded := strconv.FormatFloat(measured, 'f', len(fraction), 64); rounded != claimed[i] {
			t.Errorf("README.md says %s, and the page %s (%s): %s", claimed[i], found[1], source, row)
		}
	}
}

// sectionOf is the text below the heading that a link of README.md leads to, until the next heading of its level or above.
func sectionOf(t *testing.T, link string) string {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	var section strings.Builder
	level := 0
	for line := range strings.Lines(testfile.Text(t, filepath.Join("..", path))) {
		if hashes := len(line) - len(strings.TrimLeft(line, "#")); hashes > 0 {
			switch {
			case level == 0 && anchorsOf(line)[0] == anchor:
				level = hashes
			case level > 0 && hashes <= level:
				return section.String()
			}
		}
		if level > 0 {
			section.WriteString(line)
		}
	}
	if level == 0 {
		t.Errorf("README.md links to %s, which has no such heading", link)
	}
	return section.String()
}

// What an installation takes is in the written table of costs, and in the page about sizing.
func TestTheReadmeSaysWhatABundleTakes(t *testing.T) {
	_, section, _ := strings.Cut(testfile.Text(t, "../README.md"), "\n## What it takes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	costs := map[string][]string{}
	for _, row := range aBundle.FindAllStringSubmatch(testfile.Text(t, "reference/costs.md"), -1) {
		costs[strings.Trim(row[1], "`")] = row[2:]
	}
	idle := regexp.MustCompile(`idle, up to 999 volumes \| (\d+) a minute.* (\d+) a minute more for each pod`).FindStringSubmatch(testfile.Text(t, "reference/sizing.md"))
	base, small, large := costs["none, `vanilla"], costs["size: small"], costs["size: large"]
	if base == nil || small == nil || large == nil || idle == nil {
		t.Fatalf("costs.md has %v, and sizing.md %v", costs, idle)
	}
	once, _ := strconv.Atoi(idle[1])
	each, _ := strconv.Atoi(idle[2])
	for _, want := range []string{
		base[0] + " objects", base[1] + " MiB of memory each", small[1] + " with `size: small`", large[1] + " with `size: large`", "Each node requests " + base[2] + " MiB",
		strconv.Itoa(once+2*each) + " requests a minute",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("README.md, What it takes: want %q", want)
		}
	}
}
