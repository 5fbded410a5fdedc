package pictures

import (
	"fmt"
	"io/fs"
	"slices"
)

const guestsPage = "test/suite/guests/RESULTS.md"

// places are the places of the path of a byte. A place of the page that is not here is an error.
var places = []string{"guest", "compute", "Ceph"}

// bytePath shows the layers between a pod in a guest and the disks of Ceph, place by place.
func bytePath(repository fs.FS) (string, error) {
	rows, err := table(repository, guestsPage, "These are the layers")
	if err != nil {
		return "", err
	}
	c := &canvas{width: 460}
	y, from := 10.0, 0
	for i, row := range rows {
		if len(row) != 3 || !slices.Contains(places, row[0]) {
			return "", fmt.Errorf("%s: tools/pictures does not know the place of the layer %q", guestsPage, row)
		}
		if i+1 < len(rows) && rows[i+1][0] == row[0] {
			continue
		}
		layers := rows[from : i+1]
		from = i + 1
		c.rect(10, y, 440, 30+40*float64(len(layers)), "box")
		c.text(20, y+19, "bold", row[0])
		for j, layer := range layers {
			at := y + 28 + 40*float64(j)
			c.rect(20, at, 420, 36, "inner")
			c.text(26, at+15, "bold", layer[1])
			c.text(26, at+29, "legend", layer[2])
		}
		y += 30 + 40*float64(len(layers))
		if i+1 < len(rows) {
			c.arrow(40, y+2, y+24)
			y += 26
		}
	}
	return c.svg("The path of a byte: from a pod in a guest, through QEMU and librbd on the compute, to Ceph"), nil
}
