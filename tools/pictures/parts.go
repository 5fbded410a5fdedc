package pictures

import (
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

// duties say what a container of a pod does. A container of the manifests that is not here is an error.
var duties = map[string]string{
	"driver":        "answers CSI calls: volumes or disks",
	"provisioner":   "watches claims, calls CreateVolume",
	"attacher":      "watches VolumeAttachments",
	"resizer":       "watches claims that grow",
	"snapshotter":   "watches VolumeSnapshotContents",
	"livenessprobe": "calls Probe",
	"registrar":     "tells kubelet where the socket is",
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
		if duties[c.Name] == "" {
			return nil, fmt.Errorf("%s: tools/pictures does not say what container %s does", name, c.Name)
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no container", name)
	}
	return names, nil
}

// parts shows the programs, what they run in, and who talks to whom.
func parts(repository fs.FS) (string, error) {
	controller, err := containers(repository, "manifests/vanilla/controller.yaml", "Deployment")
	if err != nil {
		return "", err
	}
	node, err := containers(repository, "manifests/vanilla/node.yaml", "DaemonSet")
	if err != nil {
		return "", err
	}
	c := &canvas{width: 460}
	y := 10.0
	box := func(title, what string, inside []string) {
		h := 44 + 22*float64(len(inside))
		c.rect(10, y, 440, h, "box")
		c.text(20, y+19, "bold", title)
		c.text(20, y+35, "dim", what)
		for i, name := range inside {
			at := y + 44 + 22*float64(i)
			c.rect(20, at, 420, 19, "inner")
			c.text(26, at+14, "bold", name)
			c.text(150, at+14, "dim", duties[name])
		}
		y += h
	}
	gap := func(down bool, labels ...string) {
		from, to := y+2, y+36
		if !down {
			from, to = to, from
		}
		c.arrow(40, from, to)
		for i, label := range labels {
			c.text(54, y+16+15*float64(i), "dim", label)
		}
		y += 38
	}
	box("OpenStack", "Keystone, Cinder, Nova, metadata service", nil)
	gap(true, "read: zones, types, limits, services")
	box("cinder-csi-generator", "inspect, plan, guard, bundle, verify", nil)
	gap(true, "bundle: Kustomize or Helm values,", "by kubectl, Helm or GitOps")
	box("API server", "StorageClasses, CSIDriver, claims, VolumeAttachments", nil)
	gap(false, "watch and write")
	box("controller pods (Deployment)", "the only ones with OpenStack credentials", controller)
	gap(true, "attached disks reach the server of the node;", "there is no call from one role to the other")
	box("node pods (DaemonSet)", "called by kubelet; no OpenStack credentials", node)
	return c.svg("The parts: OpenStack, the generator, the API server, controller pods with " + strings.Join(controller, ", ") + ", node pods with " + strings.Join(node, ", ")), nil
}
