package pictures

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	callsPage  = "docs/explanation/who-calls-whom.md"
	controller = "manifests/vanilla/controller.yaml"
	node       = "manifests/vanilla/node.yaml"
)

// called are the names that the table of who calls whom has for containers.
var called = map[string]string{
	"provisioner": "external-provisioner", "attacher": "external-attacher", "resizer": "external-resizer", "snapshotter": "external-snapshotter",
	"registrar": "node-driver-registrar", "livenessprobe": "livenessprobe",
}

// caller is a row of the table of who calls whom: what it watches, and which RPCs of the driver it calls.
type caller struct{ watches, rpcs string }

// callers are the rows by the name of the caller. Of the RPCs those of every installation count.
func callers(repository fs.FS) (map[string]caller, error) {
	rows, err := table(repository, callsPage, "![The parts")
	if err != nil {
		return nil, err
	}
	all := map[string]caller{}
	for _, row := range rows {
		if len(row) != 4 {
			return nil, fmt.Errorf("%s: want four cells, got %q", callsPage, row)
		}
		rpcs, _, _ := strings.Cut(row[2], ";")
		rpcs, _, _ = strings.Cut(rpcs, ", then ")
		all[row[0]] = caller{row[1], rpcs}
	}
	return all, nil
}

// containers are the containers of a workload of the manifests.
func containers(repository fs.FS, name, kind string) ([]string, error) {
	text, err := fs.ReadFile(repository, name)
	if err != nil {
		return nil, err
	}
	_, workload, _ := strings.Cut(string(text), "\nkind: "+kind+"\n")
	workload, _, _ = strings.Cut(workload, "\n---\n")
	var w struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Name string } }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(workload), &w); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var names []string
	for _, c := range w.Spec.Template.Spec.Containers {
		if c.Name != "driver" && called[c.Name] == "" {
			return nil, fmt.Errorf("%s: tools/pictures does not say whom container %s calls", name, c.Name)
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no container", name)
	}
	return names, nil
}

// inside are the lines of a box: each container, and what it does to whom.
func inside(names []string, calls map[string]caller, driver string) ([][2]string, error) {
	lines := [][2]string{{"driver", driver}}
	for _, name := range names {
		if name == "driver" {
			continue
		}
		c, known := calls[called[name]]
		if !known {
			return nil, fmt.Errorf("%s has no row for %s", callsPage, called[name])
		}
		what := "calls " + c.rpcs
		if c.watches != "nothing" {
			what = "watches " + c.watches
		}
		lines = append(lines, [2]string{name, what})
	}
	return lines, nil
}

var nodeRPC = regexp.MustCompile(`Node[A-Z]\w+`)

// parts shows the programs, what they run in, and who talks to whom. An arrow begins at the one that calls.
func parts(repository fs.FS) (string, error) {
	controllers, err := containers(repository, controller, "Deployment")
	if err != nil {
		return "", err
	}
	nodes, err := containers(repository, node, "DaemonSet")
	if err != nil {
		return "", err
	}
	calls, err := callers(repository)
	if err != nil {
		return "", err
	}
	up, err := inside(controllers, calls, "the only program with OpenStack credentials")
	if err != nil {
		return "", err
	}
	down, err := inside(nodes, calls, "finds, formats and mounts disks; no credentials")
	if err != nil {
		return "", err
	}
	kubelet := nodeRPC.FindAllString(calls["kubelet"].rpcs, -1)
	if len(kubelet) == 0 {
		return "", fmt.Errorf("%s has no row for kubelet", callsPage)
	}
	down = append([][2]string{{"kubelet", "calls " + strings.Join(kubelet[:2], ", ") + ", …"}}, down...)

	c := &canvas{width: 460}
	y := 10.0
	box := func(class, title, what string, inside [][2]string) {
		h := 44 + 22*float64(len(inside))
		c.rect(10, y, 440, h, class)
		c.text(20, y+19, "bold", title)
		c.text(20, y+35, "dim", what)
		for i, line := range inside {
			at := y + 44 + 22*float64(i)
			c.rect(20, at, 420, 19, "inner")
			c.text(26, at+14, "bold", line[0])
			c.text(132, at+14, "dim", line[1])
		}
		y += h
	}
	arrow := func(x float64, down bool, label string) {
		from, to := y+2, y+36
		if !down {
			from, to = to, from
		}
		c.arrow(x, from, to)
		c.text(x+12, y+23, "dim", label)
	}
	box("before", "before all: cinder-csi-generator", "reads OpenStack, writes a bundle; a person or GitOps applies it", nil)
	y += 14
	box("box", "API server", "claims, VolumeAttachments, classes, nodes", nil)
	arrow(40, false, "sidecars watch and write")
	y += 38
	box("box", "controller pods (Deployment)", "the sidecars call the driver over a socket", up)
	arrow(40, true, "the driver: create, attach, detach, …")
	y += 38
	box("box", "OpenStack", "Keystone, Cinder, Nova; the metadata service of Nova", nil)
	arrow(40, true, "Nova plugs the disk in")
	arrow(230, false, "the driver: which server is this?")
	y += 38
	box("box", "each node, a server of Nova (DaemonSet)", "kubelet watches pods, and calls the driver over a socket", down)
	return c.svg("The parts: the sidecars of the controller pods (" + strings.Join(controllers, ", ") + ") watch the API server and call the driver, which calls Keystone, Cinder and Nova. " +
		"Nova plugs the disk into the server of the node. There kubelet calls the driver, which asks the metadata service only"), nil
}
