package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
)

// writeManuals writes a manual page for each command of each program, and completions for the programs that people type. Manifests
// start the driver, so it has no completions.
func (r *release) writeManuals(context.Context) error {
	for _, root := range []*cobra.Command{driverCommand(), cli.Commands(), command.Commands()} {
		root.DisableAutoGenTag = true // it holds the day of the build
		if err := r.writeManual(root); err != nil {
			return err
		}
	}
	for _, commands := range []func() *cobra.Command{cli.Commands, command.Commands} {
		if err := r.writeCompletions(commands); err != nil {
			return err
		}
	}
	return r.list("completions/kubectl_complete-cinder", []byte(kubectlCompletion), 0o755)
}

// writeManual writes the page of a command, then those of its subcommands.
func (r *release) writeManual(command *cobra.Command) error {
	var page bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &r.time, Source: "cinder-csi " + r.Version, Manual: "cinder-csi"}
	if err := doc.GenMan(command, header, &page); err != nil {
		return err
	}
	name := strings.ReplaceAll(command.CommandPath(), " ", "-")
	if err := r.list("man/"+name+".1", page.Bytes(), 0o644); err != nil {
		return err
	}
	for _, sub := range command.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := r.writeManual(sub); err != nil {
			return err
		}
	}
	return nil
}

// writeCompletions writes the completion scripts of a program. Each script comes from a new tree, because cobra changes the tree
// while it writes.
func (r *release) writeCompletions(commands func() *cobra.Command) error {
	name := commands().Name()
	for _, shell := range []struct {
		file  string
		write func(*cobra.Command, io.Writer) error
	}{
		{"bash/" + name, func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) }},
		{"zsh/_" + name, func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) }},
		{"fish/" + name + ".fish", func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) }},
	} {
		var script bytes.Buffer
		if err := shell.write(commands(), &script); err != nil {
			return err
		}
		if err := r.list("completions/"+shell.file, script.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kubectlCompletion is what kubectl runs for the completion of its plugin "cinder": the program kubectl_complete-cinder on the PATH.
// The scripts of the shells complete kubectl-cinder only, and people type kubectl cinder.
const kubectlCompletion = `#!/bin/sh
exec kubectl-cinder __complete "$@"
`

// list writes a file and names it in the report.
func (r *release) list(name string, content []byte, mode fs.FileMode) error {
	if err := r.write(name, content, mode); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.Report, name)
	return err
}

// driverCommand describes the driver for the writer of manual pages; the driver itself parses its flags without cobra.
func driverCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   driver,
		Short: "Serve Cinder volumes to Kubernetes over the Container Storage Interface",
		Long: "The driver has a controller role, which calls Cinder and Nova, and a node role, which mounts disks. It takes the flags of upstream's " +
			"cinder-csi-plugin.\n\nThe command access-rules prints the OpenStack requests that the driver sends, as access rules of an application credential. The " +
			"command await-detached [NODE] waits while the node is drained, until none of its volumes is attached, for 2 minutes at most. A preStop hook runs it. Without NODE " +
			"it reads the environment variables NODE_NAME and DRIVER_NAME.",
		Run: func(*cobra.Command, []string) {},
	}
	var c config.Config
	c.Bind(command.Flags())
	command.Flags().Bool("version", false, "print the version and exit")
	return command
}
