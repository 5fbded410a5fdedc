package release

import (
	"bytes"
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/cli"
)

// writeManuals writes a manual page for each command, and completions for the generator. The driver is started by manifests, so it
// has no completions.
func (r *release) writeManuals(context.Context) error {
	for _, command := range []*cobra.Command{driverCommand(), cli.Commands()} {
		if err := os.MkdirAll(r.path("man"), 0o755); err != nil {
			return err
		}
		header := &doc.GenManHeader{Section: "1", Date: &r.time, Source: "cinder-csi " + r.Version, Manual: "cinder-csi"}
		command.DisableAutoGenTag = true
		if err := doc.GenManTree(command, header, r.path("man")); err != nil {
			return err
		}
	}
	for name, content := range map[string]func(*cobra.Command, *bytes.Buffer) error{
		"bash/cinder-csi-generator":      func(c *cobra.Command, w *bytes.Buffer) error { return c.GenBashCompletionV2(w, true) },
		"zsh/_cinder-csi-generator":      func(c *cobra.Command, w *bytes.Buffer) error { return c.GenZshCompletion(w) },
		"fish/cinder-csi-generator.fish": func(c *cobra.Command, w *bytes.Buffer) error { return c.GenFishCompletion(w, true) },
	} {
		var w bytes.Buffer
		if err := content(cli.Commands(), &w); err != nil {
			return err
		}
		if err := r.write("completions/"+name, w.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// driverCommand describes the driver for the writer of manual pages; the driver itself parses its flags without cobra.
func driverCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   driver,
		Short: "Serve Cinder volumes to Kubernetes over the Container Storage Interface",
		Long: "The driver has a controller role, which calls Cinder and Nova, and a node role, which mounts disks. It takes the flags of upstream's " +
			"cinder-csi-plugin.\n\nThe command access-rules prints the OpenStack requests that the driver sends, as access rules of an application credential. The " +
			"command await-detached NODE waits while the node is drained, until none of its volumes is attached; a preStop hook runs it.",
		Run: func(*cobra.Command, []string) {},
	}
	var c config.Config
	c.Bind(command.Flags())
	command.Flags().Bool("version", false, "print the version and exit")
	return command
}
