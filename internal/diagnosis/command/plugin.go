package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// The exit codes are those of the generator.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

// Exit is an exit code and what it means. They are a contract with scripts.
type Exit struct {
	Code    int
	Meaning string
}

// Exits are all exit codes of the plugin, as the reference lists them.
var Exits = []Exit{
	{exitOK, "nothing hangs, and there is no finding"},
	{exitFailure, "a step waits or has failed, there is a finding, or something could not be read"},
	{exitUsage, "wrong usage; of `orphans` also a cluster ID that is not known"},
}

const defaultTimeout = 2 * time.Minute

// Run is the kubectl plugin: it runs one command line and gives the exit code.
func Run(ctx context.Context, w World, args []string) int {
	w.Stderr = printable.To(w.Stderr) // what the report quotes is made printable where it is printed
	begun := false                    // flags and arguments were right
	root := newRoot(w)
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(w.Stderr, printable.Folded("", "Error: "+err.Error(), cmp.Or(w.Columns, width)))
	if begun && !errors.Is(err, ErrUsage) {
		return exitFailure
	}
	fmt.Fprintf(w.Stderr, "See '%s --help'.\n", c.CommandPath())
	return exitUsage
}

// Commands is the tree of commands of the kubectl plugin, for what describes them. They have no world, so they cannot run.
func Commands() *cobra.Command { return newRoot(World{}) }

func newRoot(w World) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-cinder", Short: "Look at volumes of the Cinder CSI driver", Version: w.Version, SilenceErrors: true, SilenceUsage: true,
		// kubectl names a plugin by its file; people type it with a space.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cinder"},
		Args:        cobra.NoArgs,
		RunE:        func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	timeout := root.PersistentFlags().Duration("timeout", defaultTimeout, "how long the cluster and the cloud may take in all")
	root.AddCommand(New(w, timeout), newList(w, timeout), newNode(w, timeout), newOrphans(w, timeout), newLost(w, timeout), newRecover(w, timeout), newOperations(w, timeout), newVersion(w, timeout), newReport(w, timeout), newExplain(w))
	root.InitDefaultCompletionCmd() // cobra would add it only when it runs, and the manual must name it
	return root
}
