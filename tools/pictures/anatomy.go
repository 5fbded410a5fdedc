package pictures

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// anatomy has a bar for each flow and driver: the parts of its time by the layer that everything waits for.
func anatomy(repository fs.FS) (string, error) {
	rows, err := table(repository, e2ePage, "![time of each flow by layer]")
	if err != nil {
		return "", err
	}
	head, err := header(repository, e2ePage, "| flow | driver |")
	if err != nil {
		return "", err
	}
	colours := map[string]string{
		"cloud": "f", "driver": "b", "driver on the node": "g", "sidecars": "a", "controller manager": "c", "scheduler": "e", "kubelet waits": "d", "kubelet": "warn",
	}
	c := &canvas{width: 480}
	for i, layer := range head[4:] {
		if colours[layer] == "" {
			return "", fmt.Errorf("%s: layer %q is unknown to tools/pictures", e2ePage, layer)
		}
		c.text(10+float64(i%4)*118, 18+float64(i/4)*18, "legend "+colours[layer], "■ "+layer)
	}
	y := 48.0
	for i, row := range rows {
		if len(row) != len(head) {
			return "", fmt.Errorf("%s: want %d cells, got %q", e2ePage, len(head), row)
		}
		if i == 0 || rows[i-1][0] != row[0] {
			c.text(10, y+12, "bold", row[0])
			y += 18
		}
		c.end(170, y+11, "dim", row[1])
		x := 178.0
		for j, cell := range row[4:] {
			seconds, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", e2ePage, row[0], err)
			}
			const second = 20 // points
			c.rect(x, y, seconds*second, 13, colours[head[4+j]])
			x += seconds * second
		}
		total, _, _ := strings.Cut(row[3], " ")
		c.text(x+5, y+11, "", total+" s")
		y += 18
	}
	return c.svg("Time of each flow in seconds, by the layer that everything waits for"), nil
}

// header are the cells of a line of a page that begins with a text.
func header(repository fs.FS, page, begin string) ([]string, error) {
	text, err := fs.ReadFile(repository, page)
	if err != nil {
		return nil, err
	}
	_, line, found := strings.Cut(string(text), "\n"+begin)
	if !found {
		return nil, fmt.Errorf("%s has no line that begins with %q", page, begin)
	}
	line, _, _ = strings.Cut(line, "\n")
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(begin+line, "| "), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells, nil
}
