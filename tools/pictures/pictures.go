// Package pictures draws the pictures of the pages from the project's own data. That is the manifests, the measured tables of the pages, and a
// recording of kubectl cinder. A test compares the files with what it draws, so a picture never shows an older state.
//
// Each picture is one SVG file that follows the reader's light or dark scheme and is narrow enough for a phone.
package pictures

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Dir is where the pictures are, from the top of the repository.
const Dir = "docs/images"

// painters draw the pictures by file name.
var painters = map[string]func(fs.FS) (string, error){
	"drift.svg":          driftComment,
	"parts.svg":          parts,
	"volume-life.svg":    volumeLife,
	"attach-detach.svg":  attachDetach,
	"node-loss.svg":      nodeLoss,
	"kubectl-cinder.svg": terminal,
}

// Draw gives the pictures by file name. The file system is the top of the repository.
func Draw(repository fs.FS) (map[string]string, error) {
	drawn := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(painters)) {
		svg, err := painters[name](repository)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		drawn[name] = svg
	}
	return drawn, nil
}

// canvas collects the elements of one picture.
type canvas struct {
	b             strings.Builder
	width, height float64
}

// The classes have one colour for a light and one for a dark background.
const style = `<style>
svg{font-family:system-ui,sans-serif;font-size:13px}
text{fill:#1f2328}.dim{fill:#59636e}.bold{font-weight:600}.mono{font-family:ui-monospace,monospace;font-size:11px;white-space:pre}
.back{fill:#ffffff}.box{fill:#f6f8fa;stroke:#8c959f}.inner{fill:#ffffff;stroke:#d1d9e0}.line{stroke:#59636e;stroke-width:1.5;fill:none}.tip{fill:#59636e}
.a{fill:#0969da}.b{fill:#bc4c00}.c{fill:#8250df}.d{fill:#1a7f37}.e{fill:#bf3989}.f{fill:#6e7781}.warn{fill:#cf222e}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.dim{fill:#9198a1}
.back{fill:#0d1117}.box{fill:#151b23;stroke:#656c76}.inner{fill:#0d1117;stroke:#3d444d}.line{stroke:#9198a1}.tip{fill:#9198a1}
.a{fill:#4493f8}.b{fill:#f0883e}.c{fill:#ab7df8}.d{fill:#3fb950}.e{fill:#db61a2}.f{fill:#9198a1}.warn{fill:#f85149}}
</style>
`

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func (c *canvas) text(x, y float64, class, s string) {
	fmt.Fprintf(&c.b, "<text x=\"%g\" y=\"%g\" class=%q xml:space=\"preserve\">%s</text>\n", x, y, class, escaper.Replace(s))
	c.height = max(c.height, y+12)
}

func (c *canvas) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&c.b, "<rect x=\"%g\" y=\"%g\" width=\"%.4g\" height=\"%g\" rx=\"4\" class=%q/>\n", x, y, w, h, class)
	c.height = max(c.height, y+h+12)
}

// arrow points down, or up.
func (c *canvas) arrow(x, from, to float64) {
	fmt.Fprintf(&c.b, "<path d=\"M%g %gV%g\" class=\"line\"/>\n", x, from, to)
	back := 7.0
	if to > from {
		back = -7
	}
	fmt.Fprintf(&c.b, "<path d=\"M%g %gl-4 %gh8z\" class=\"tip\"/>\n", x, to, back)
}

// svg closes the picture. The title is what a screen reader says.
func (c *canvas) svg(title string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\">\n<title>%s</title>\n%s<rect width=\"%g\" height=\"%g\" class=\"back\"/>\n%s</svg>\n",
		c.width, c.height, escaper.Replace(title), style, c.width, c.height, c.b.String())
}

// wrap breaks a text into lines of at most width characters.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
