package pictures

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

const (
	e2ePage         = "test/suite/cluster/RESULTS.md"
	performancePage = "test/suite/openstack/RESULTS.md"
)

// table gives the cells of the table whose header follows a line of a page that begins with a text.
func table(repository fs.FS, page, after string) ([][]string, error) {
	text, err := fs.ReadFile(repository, page)
	if err != nil {
		return nil, err
	}
	_, rest, found := strings.Cut(string(text), "\n"+after)
	if !found {
		return nil, fmt.Errorf("%s has no line that begins with %q", page, after)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		return nil, fmt.Errorf("%s has no table after %q", page, after)
	}
	return rows[2:], nil // without header and rule
}

// volumeLife shows the steps of a volume with the calls that each costs.
func volumeLife(repository fs.FS) (string, error) {
	rows, err := table(repository, performancePage, "These are the calls for one of fifty volumes")
	if err != nil {
		return "", err
	}
	c := &canvas{width: 380}
	y := 10.0
	states := map[string]string{"create": "available", "attach": "in-use", "expand": "in-use, larger", "detach": "available", "delete": "404: gone"}
	for i, row := range rows {
		state := states[row[0]]
		if state == "" || len(row) != 3 {
			return "", fmt.Errorf("%s: operation %q is unknown to tools/pictures", performancePage, row[0])
		}
		lines := wrap(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(row[2], "$1"), 52)
		h := 28 + 16*float64(len(lines))
		c.rect(10, y, 360, h, "box")
		c.text(20, y+19, "bold", row[0])
		c.text(100, y+19, "d", row[1]+" calls")
		for j, line := range lines {
			c.text(20, y+36+16*float64(j), "dim", line)
		}
		y += h
		if i < len(rows)-1 {
			c.arrow(40, y+2, y+28)
			c.text(54, y+19, "bold", "Cinder says "+state)
			y += 30
			continue
		}
		c.text(54, y+19, "bold", "Cinder says "+state)
		y += 30
	}
	return c.svg("The life of a volume: each step, the calls that it costs, and what Cinder must say before the driver reports success"), nil
}

// layers are the colours of who everything waits for.
var layers = map[string]string{
	"cloud": "f", "driver": "b", "driver on the node": "b", "sidecars": "a", "controller manager": "c", "scheduler": "e", "kubelet waits": "d", "kubelet": "d",
}

// attachDetach shows each step of an attach and of a move by its measured time: everything waits for the one whose bar it is.
func attachDetach(repository fs.FS) (string, error) {
	c := &canvas{width: 480}
	y := 20.0
	for _, flow := range []string{"Claim to running pod", "Pod moved to another node"} {
		rows, err := table(repository, e2ePage, flow+", step by step:")
		if err != nil {
			return "", err
		}
		c.text(10, y, "bold", flow)
		y += 8
		total := 0.0
		for _, row := range rows {
			seconds, err := strconv.ParseFloat(row[2], 64)
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", e2ePage, row[0], err)
			}
			total += seconds
		}
		at := 0.0
		for _, row := range rows {
			class := layers[row[1]]
			if class == "" {
				return "", fmt.Errorf("%s: layer %q is unknown to tools/pictures", e2ePage, row[1])
			}
			seconds, _ := strconv.ParseFloat(row[2], 64)
			x, w := 10+460*at/total, max(2, 460*seconds/total)
			c.rect(min(x, 468), y, w, 5, class)
			c.text(10, y+18, "", row[0])
			c.text(290, y+18, class, row[1])
			c.text(440, y+18, "dim", row[2])
			at += seconds
			y += 26
		}
		c.text(10, y+10, "bold", fmt.Sprintf("%.1f s in all", total))
		y += 44
	}
	return c.svg("Attach and detach: each step, its time in seconds, and for whom everything waits"), nil
}

var lostNode = regexp.MustCompile(`Node lost: not ready after ([0-9.]+) s; volumes moved ([0-9.]+) s after the taint; node back with a volume after ([0-9.]+) s`)

// nodeLoss is the scenario of a node that loses its power, as measured.
func nodeLoss(repository fs.FS) (string, error) {
	text, err := fs.ReadFile(repository, e2ePage)
	if err != nil {
		return "", err
	}
	found := lostNode.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s does not say how long a lost node took", e2ePage)
	}
	c := &canvas{width: 440}
	y := 22.0
	for i, s := range []struct{ when, who, what, class string }{
		{"0 s", "the server loses its power", "Its pods and mounts are gone. Kubernetes does not know yet.", "warn"},
		{string(found[1]) + " s", "Kubernetes says NotReady", "It deletes the pods, which stay Terminating, and detaches nothing: the node may still write.", "c"},
		{"you decide", "shut the server down, then taint the node", "openstack server stop, then the taint node.kubernetes.io/out-of-service. Only now is it safe.", "b"},
		{"+ " + string(found[2]) + " s", "the volumes are on another node", "Kubernetes detaches, the driver checks Nova and Cinder, the pods start with every synced line.", "d"},
		{"later", "start the server, remove the taint", "The node pod cleans up what the dead pods left.", "b"},
		{"+ " + string(found[3]) + " s", "the node mounts a volume again", "", "d"},
	} {
		fmt.Fprintf(&c.b, "<circle cx=\"16\" cy=\"%g\" r=\"6\" class=%q/>\n", y-4, s.class)
		c.text(32, y, s.class, s.when)
		c.text(112, y, "bold", s.who)
		lines := wrap(s.what, 40)
		for j, line := range lines {
			c.text(112, y+17+16*float64(j), "dim", line)
		}
		next := y + 30 + 16*float64(len(lines))
		if i < 5 {
			fmt.Fprintf(&c.b, "<path d=\"M16 %gV%g\" class=\"line\"/>\n", y+4, next-12)
		}
		y = next
	}
	return c.svg("A node is lost: what happens when, and what a person must decide"), nil
}

// recording is what kubectl cinder volume printed for a volume whose attach hangs.
const recording = "internal/diagnosis/testdata/attaching-stuck.txt"

// terminal shows the recording as a terminal does.
func terminal(repository fs.FS) (string, error) {
	text, err := fs.ReadFile(repository, recording)
	if err != nil {
		return "", err
	}
	lines := []string{"$ kubectl cinder volume --namespace attaching-stuck data"}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	c := &canvas{width: 760}
	c.rect(4, 4, 752, 15*float64(len(lines))+26, "box")
	for i, line := range lines {
		class := "mono"
		switch {
		case strings.HasPrefix(line, "done"):
			class += " d"
		case strings.HasPrefix(line, "waiting"):
			class += " b"
		case strings.HasPrefix(line, "failed"), strings.HasPrefix(line, "Cause"):
			class += " warn"
		case i == 0 || strings.HasPrefix(strings.TrimSpace(line), "$"):
			class += " a"
		}
		if cut := 112; len(line) > cut {
			line = line[:cut] + "…"
		}
		c.text(16, 24+15*float64(i), class, line)
	}
	return c.svg("kubectl cinder volume in a terminal: an attach that hangs, since when, why, and what to do"), nil
}
