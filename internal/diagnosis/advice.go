package diagnosis

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// run is a line of advice that is a command. Every command of this package is made here, so that what a cloud or a cluster calls its
// objects is quoted.
func run(words ...string) string { return "$ " + shell.Line(words...) }

func (s *walk) inNamespace(words ...string) string { return kubectl(s.Namespace, words...) }

func kubectl(namespace string, words ...string) string {
	return run(append([]string{"kubectl", "--namespace", shell.Name(namespace, "NAMESPACE")}, words...)...)
}

func podNamed(name string) string  { return shell.Name(name, "POD") }
func nodeNamed(name string) string { return shell.Name(name, "NODE") }

func claimNamed(name string) string { return shell.Name(name, "CLAIM") }

func attachmentNamed(name string) string { return shell.Name(name, "VOLUMEATTACHMENT") }

func (s *walk) describePod(p corev1.Pod) string {
	return kubectl(p.Namespace, "describe", "pod", podNamed(p.Name))
}

// logOf is the whole log of the driver in one pod. With a selector kubectl shows ten lines.
func logOf(p corev1.Pod) string {
	return kubectl(p.Namespace, "logs", podNamed(p.Name), "--all-containers", "--since=1h")
}

func (s *walk) controllerLog() []string {
	if len(s.Controllers) == 0 {
		return []string{run("kubectl", "get", "pods", "--all-namespaces", "--selector", controllerLabels)}
	}
	var all []string
	for _, p := range s.Controllers {
		all = append(all, logOf(p))
	}
	return all
}

func (s *walk) nodeLog(node string) []string {
	var all []string
	if n := s.Nodes[node]; n != nil {
		for _, p := range n.Plugins {
			all = append(all, logOf(p))
		}
	}
	if len(all) > 0 {
		return all
	}
	return []string{
		run("kubectl", "get", "pods", "--all-namespaces", "--output", "wide", "--selector", nodeLabels, "--field-selector", "spec.nodeName="+nodeNamed(node)),
		run("kubectl", "--namespace", "NAMESPACE", "logs", "POD", "--all-containers", "--since=1h"),
	}
}

func (s *walk) showVolume() []string {
	return []string{run("openstack", "volume", "show", s.volumeWord()), run("openstack", "--os-volume-api-version", "3.5", "volume", "message", "list")}
}

func (s *walk) listAttachments() []string {
	return []string{run("openstack", "--os-volume-api-version", "3.27", "volume", "attachment", "list", "--volume-id", s.volumeWord())}
}

func (s *walk) volumeWord() string { return shell.ID(s.volumeID(), "VOLUME") }

// Given are the flags with which the reader of a report named the cloud and the cluster, by the program that takes them. The reader copies the
// commands of the report, which must ask the same ones.
type Given map[string][]string

// Complete adds the flags to the commands of a report.
func (g Given) Complete(r *Report) {
	for i, s := range r.Steps {
		r.Steps[i].Do = slices.Clone(s.Do)
		for j, do := range s.Do {
			r.Steps[i].Do[j] = g.line(do)
		}
	}
}

// command is a command in a sentence, with the flags.
func (g Given) command(do string) string { return strings.TrimPrefix(g.line(do), "$ ") }

// Command is the same for the words of a command.
func (g Given) Command(words ...string) string { return g.command(run(words...)) }

func (g Given) line(do string) string {
	command, is := strings.CutPrefix(do, "$ ")
	program, rest, _ := strings.Cut(command, " ")
	if strings.HasPrefix(rest, "cinder ") {
		program += " cinder"
	}
	flags := shell.Line(g[program]...)
	switch {
	case !is || flags == "":
		return do
	case program == "kubectl cinder", program == "cinder-csi-generator": // their flags belong to the command
		return do + " " + flags
	}
	return "$ " + program + " " + flags + " " + rest
}
