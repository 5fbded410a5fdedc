// Package pictures draws the pictures of the pages from the project's own data. That is the manifests, the measured tables of the results, a plan, a
// recording of kubectl cinder, and one of Prometheus for the dashboards. A test compares the files with what it draws, so a picture never shows an older state.
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
	"byte-path.svg":      bytePath,
	"drift.svg":          driftComment,
	"parts.svg":          parts,
	"plan.svg":           plan,
	"e2e-anatomy.svg":    anatomy,
	"volume-life.svg":    volumeLife,
	"attach-detach.svg":  attachDetach,
	"node-loss.svg":      nodeLoss,
	"kubectl-cinder.svg": terminal,
}

// Draw gives the pictures by file name. The file system is the top of the repository.
func Draw(repository fs.FS) (map[string]string, error) {
	drawn, err := dashboards(repository)
	if err != nil {
		return nil, err
	}
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
.back{fill:#ffffff}.before{fill:none;stroke:#8c959f;stroke-dasharray:5 4}.box{fill:#f6f8fa;stroke:#8c959f}.inner{fill:#ffffff;stroke:#d1d9e0}.line{stroke:#59636e;stroke-width:1.5;fill:none}.tip{fill:#59636e}
.a{color:#0969da}.b{color:#bc4c00}.c{color:#8250df}.d{color:#1a7f37}.e{color:#bf3989}.f{color:#6e7781}.g{color:#9a6700}.warn{color:#cf222e}
.a,.b,.c,.d,.e,.f,.g,.warn{fill:currentColor}.curve{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}
.title{font-size:16px;font-weight:600}.small{font-size:10px}.legend{font-size:10.5px}.grid{stroke:#d1d9e0}.fault{fill:#fff1c2}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.dim{fill:#9198a1}
.back{fill:#0d1117}.box{fill:#151b23;stroke:#656c76}.inner{fill:#0d1117;stroke:#3d444d}.line{stroke:#9198a1}.tip{fill:#9198a1}
.a{color:#4493f8}.b{color:#f0883e}.c{color:#ab7df8}.d{color:#3fb950}.e{color:#db61a2}.f{color:#9198a1}.g{color:#d29922}.warn{color:#f85149}
.grid{stroke:#3d444d}.fault{fill:#3a2d0c}}
</style>
`

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func (c *canvas) text(x, y float64, class, s string) {
	fmt.Fprintf(&c.b, "<text x=\"%g\" y=\"%g\" class=%q xml:space=\"preserve\">%s</text>\n", x, y, class, escaper.Replace(s))
	c.height = max(c.height, y+12)
}

// middle writes a text around x, and end one that ends there. The width of a text depends on the font of the reader.
func (c *canvas) middle(x, y float64, class, s string) { c.anchored(x, y, "middle", class, s) }

func (c *canvas) end(x, y float64, class, s string) { c.anchored(x, y, "end", class, s) }

func (c *canvas) anchored(x, y float64, anchor, class, s string) {
	fmt.Fprintf(&c.b, "<text x=\"%.4g\" y=\"%.5g\" text-anchor=%q class=%q>%s</text>\n", x, y, anchor, class, escaper.Replace(s))
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
