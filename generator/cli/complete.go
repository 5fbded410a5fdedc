package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

func complete(w *World, root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "explain":
			c.ValidArgsFunction = completeExplain
		case "validate", "adopt":
			c.ValidArgsFunction = completeDirectory
		}
		if c.Flag("os-cloud") != nil {
			_ = c.RegisterFlagCompletionFunc("os-cloud", command.CompleteClouds(w.Env)) // fails only if registered twice
		}
	}
}

// completeDirectory offers directories for the one argument.
func completeDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeExplain offers the objects and volume types of the bundle in the current directory, then the fields of the object, then directories. The
// directory comes last on the command line, so that completion cannot know another one.
func completeExplain(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	if len(args) == 1 {
		if _, isType := volumeTypeOf(args[0]); isType {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	}
	dir, tree, _, err := readBundle(".")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	objects, _, err := verify.BundleAt(dir.Path, nil, tree, dir.Plan.Target, dir.Plan.Format)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	if types, err := plan.TypesOf(*dir.Plan); err == nil && len(args) == 0 {
		for _, name := range types {
			all = append(all, volumeTypeKind+"/"+name)
		}
	}
	for _, o := range objects {
		name := strings.ToLower(o.Kind()) + "/" + o.Name()
		switch {
		case len(args) == 0:
			all = append(all, name)
		case strings.EqualFold(args[0], name):
			for _, f := range field.Leaves(o.Fields, nil) {
				all = append(all, f.String())
			}
		}
	}
	slices.Sort(all)
	return shell.Candidates(slices.Compact(all)), cobra.ShellCompDirectiveNoFileComp
}
