package diagnosis

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// PrintRecovery writes a recovery as documents of YAML for kubectl. What a person must know stands in comments. No text of Cinder reaches the
// documents but through a marshaller, and none reaches a comment with a line break.
func PrintRecovery(out io.Writer, r Recovery, columns int) error {
	p := newPrinter(out, columns)
	for _, text := range r.header() {
		if strings.HasPrefix(text, "$ ") {
			p.copied("#   " + text)
			continue
		}
		p.text("# ", text)
	}
	namespace := ""
	for i, o := range r.Objects {
		if i == 0 || o.Namespace != namespace {
			namespace = o.Namespace
			p.line("#")
			p.text("# ", "== Namespace "+orUnknown(namespace))
		}
		for j, document := range o.Documents {
			p.line("---")
			if j == 0 {
				p.text("# ", fmt.Sprintf("%s %s in Cinder", o.Kind, o.ID))
				for _, note := range o.Notes {
					p.others("# ", note)
				}
				for _, command := range o.commands() {
					p.copied("# $ " + printable.Line(shell.Line(command...)))
				}
			}
			text, err := yaml.Marshal(document)
			if err != nil {
				return err
			}
			p.copied(strings.TrimRight(string(text), "\n"))
		}
	}
	return p.err
}

func orUnknown(text string) string {
	return cmp.Or(text, "(unknown)")
}

// header says what must be done before the documents are applied, and what they lack.
func (r Recovery) header() []string {
	lines := []string{fmt.Sprintf("What cluster %q left in Cinder: %d objects, from Cinder's metadata alone. Read this, then apply it: kubectl apply -f FILE", r.Cluster, len(r.Objects))}
	if r.New == r.Cluster {
		lines = append(lines, fmt.Sprintf("- The driver of the new cluster must have the cluster ID %q (spec.clusterID of the bundle, --cluster of the driver). If it cannot, name its ID with --new-cluster-id.", r.Cluster))
	} else {
		lines = append(lines,
			fmt.Sprintf("- The new cluster has the ID %q. A driver with --protect-other-clusters refuses these objects until they have its mark. Each first document has the command that changes it; all of them: --output commands.", r.New))
	}
	if len(r.Namespaces) > 0 {
		lines = append(lines, "- These namespaces must exist: "+strings.Join(r.Namespaces, " "))
	}
	lines = append(lines,
		"- No server of the lost cluster may use the volumes any more: delete its servers, or shut them down and detach the volumes. Two servers that write to one file system destroy it. The commands that detach are above each volume; all of them: --output commands.",
		"- Each PersistentVolume has the reclaim policy Retain until a person decides, and each VolumeSnapshotContent the deletionPolicy Retain.",
		"- Each PersistentVolume has the attribute "+contract.ContextResizeRequired+`: "true". With it a node of this driver never formats the volume. Other drivers do not keep to that.`)
	if n := r.FillIns(); n > 0 {
		lines = append(lines, fmt.Sprintf("- %d objects are not valid until a person decides: look for %s.", n, FillIn))
	}
	if slices.ContainsFunc(r.Objects, func(o Restored) bool { return o.Kind == "volume" && o.Mode == "" }) {
		lines = append(lines, "- If no claim of the cluster had volumeMode Block, this fills in all modes:", run("sed", "s/volumeMode: "+FillIn+"/volumeMode: Filesystem/", "FILE"))
	}
	if len(r.Unclassed) > 0 {
		lines = append(lines, fmt.Sprintf("- Cinder does not know the StorageClass. Volumes of these types have none, and cannot grow: %q. Name it with --storage-class TYPE=CLASS, or see --classes-from-cluster.", r.Unclassed))
	}
	lines = append(lines, "- Volumes that were kept when their claim was deleted are here too, with that claim.", "- Cinder does not know labels and annotations of claims, the access mode ReadWriteOncePod, mount options, the VolumeAttributesClass, or Secrets of a class.")
	for _, l := range r.LeftOut {
		lines = append(lines, fmt.Sprintf("- Left out: %s %s: %s", l.Kind, l.ID, l.Why))
	}
	for _, g := range r.Gaps {
		lines = append(lines, "- Not seen, so not here: "+g.What+": "+g.Why)
	}
	return lines
}

// commands are what a person runs in the cloud before the objects are used.
func (o Restored) commands() [][]string {
	commands := slices.Clone(o.Detach)
	if len(o.Mark) > 0 {
		commands = append(commands, o.Mark)
	}
	return commands
}

// PrintCommands writes the commands that detach each volume from the servers of the lost cluster. Then it writes those that give each object the mark
// of the new cluster.
func PrintCommands(out io.Writer, r Recovery) error {
	p := newPrinter(out, 0)
	var detach, mark []string
	for _, o := range r.Objects {
		for _, command := range o.Detach {
			detach = append(detach, printable.Line(shell.Line(command...)))
		}
		if len(o.Mark) > 0 {
			mark = append(mark, printable.Line(shell.Line(o.Mark...)))
		}
	}
	if len(detach) > 0 {
		p.copied("# Servers that still have a volume. Stop what uses it there first: shut the server down, or delete it.")
	}
	for _, line := range append(detach, mark...) {
		p.copied(line)
	}
	return p.err
}

// PrintRecoveryTable writes what can be recovered, for people.
func PrintRecoveryTable(out io.Writer, r Recovery, columns int) error {
	p := newPrinter(out, columns)
	var rows [][]string
	for _, o := range r.Objects {
		cells := []string{orNone(o.Namespace), orNone(o.Name), o.Kind, o.ID, fmt.Sprint(o.Size), orNone(o.Mode), ""}
		if o.FillIns > 0 {
			cells[len(cells)-1] = FillIn
		}
		rows = append(rows, cells)
	}
	p.table("NAMESPACE\tNAME\tKIND\tID\tGIB\tMODE\tDECIDE", rows)
	p.line("")
	for _, text := range r.header() {
		if !strings.HasPrefix(text, "$ ") { // the documents have it
			p.text("", text)
		}
	}
	return p.err
}
