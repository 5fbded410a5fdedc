package pictures

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const reviewPage = "docs/how-to/review-a-deployment.md"

var driftOutput = regexp.MustCompile("(?s)<!-- changes -->\n```markdown\n(.*?)```\n")

// driftComment shows the comment of the pipeline before and after somebody ran generate. Before is the output in the page, which a test keeps
// true; after is what the program writes when nothing differs.
func driftComment(repository fs.FS) (string, error) {
	page, err := fs.ReadFile(repository, reviewPage)
	if err != nil {
		return "", err
	}
	found := driftOutput.FindSubmatch(page)
	if found == nil {
		return "", fmt.Errorf("%s has no output after <!-- changes -->", reviewPage)
	}
	var after strings.Builder
	if err := report.ChangesMarkdown(&after, v1alpha1.Changes{UpToDate: true}); err != nil {
		return "", err
	}
	c := &canvas{width: 460}
	y := c.comment(10, "the cloud has a new volume type", "exit 2", "warn", string(found[1]))
	c.arrow(40, y+2, y+36)
	c.text(54, y+16, "bold", "cinder-csi-generator generate")
	c.text(54, y+31, "dim", "its files are the pull request; a person reviews and merges")
	c.comment(y+38, "the next run", "exit 0", "d", after.String())
	return c.svg("Drift in a pull request: the comment when the cloud changed, and after generate"), nil
}

// comment draws the Markdown of the program as a pipeline posts it, and gives where the next thing can stand.
func (c *canvas) comment(y float64, when, exit, class, markdown string) float64 {
	var lines []string
	heading := 0
	for line := range strings.Lines(markdown) {
		text := strings.NewReplacer("### ", "", "**", "", "`", "", "- ", "• ").Replace(strings.TrimSpace(line))
		if text == "" {
			continue
		}
		lines = append(lines, wrap(text, 62)...)
		if strings.HasPrefix(line, "#") {
			heading = len(lines)
		}
	}
	h := 38 + 17*float64(len(lines))
	c.rect(10, y, 440, h, "box")
	c.text(20, y+20, "dim", "drift check: "+when)
	c.text(396, y+20, class, exit)
	for i, line := range lines {
		style := ""
		if i < heading {
			style = "bold"
		}
		c.text(20, y+44+17*float64(i), style, line)
	}
	return y + h
}
