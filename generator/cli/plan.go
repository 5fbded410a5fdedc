package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// decision is the flags that a plan needs.
type decision struct {
	from   source
	target string
}

var (
	targets = []string{string(v1alpha1.Vanilla), string(v1alpha1.Standalone), string(v1alpha1.HostedControlPlane)}
	formats = []string{string(v1alpha1.Kustomize), string(v1alpha1.Helm)}
)

func (d *decision) flags(c *cobra.Command) {
	d.from.flags(c)
	c.Flags().StringVar(&d.target, "target", "", "where the bundle is installed: "+strings.Join(targets, ", "))
	_ = c.RegisterFlagCompletionFunc("target", cobra.FixedCompletions(targets, cobra.ShellCompDirectiveNoFileComp))
}

// decide makes the decisions and says what a person should know of them.
func (d *decision) decide(ctx context.Context, w *World, format v1alpha1.Format) (plan.Result, error) {
	if err := oneOf("--target", d.target, targets); err != nil {
		return plan.Result{}, err
	}
	inventory, err := d.from.read(ctx, w)
	if err != nil {
		return plan.Result{}, err
	}
	r, err := plan.Decide(inventory, d.from.distribution, v1alpha1.Target(d.target), format, w.Version)
	if err != nil {
		return plan.Result{}, err
	}
	for _, line := range slices.Concat(r.Warnings, r.Notices) {
		fmt.Fprintln(w.Stderr, "Warning: "+line)
	}
	return r, nil
}

func oneOf(flag, value string, allowed []string) error {
	switch {
	case value == "":
		return usage("%s is missing: one of %s", flag, strings.Join(allowed, ", "))
	case !slices.Contains(allowed, value):
		return usage("%s %q: want one of %s", flag, value, strings.Join(allowed, ", "))
	}
	return nil
}

func newPlanCommand(w *World, shared *common) *cobra.Command {
	d := decision{from: source{common: shared}}
	var output string
	c := &cobra.Command{
		Use:   "plan --target T",
		Short: "Print what would be decided, each decision with value, reason and facts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			r, err := d.decide(cmd.Context(), w, v1alpha1.Kustomize) // no decision depends on the format
			if err != nil {
				return err
			}
			document := r.Document(nil)
			document.Format, document.Files = "", nil
			return print(w, output, document, func(out io.Writer) error { return report.Plan(out, document) })
		},
	}
	d.flags(c)
	outputFlag(c, &output)
	return c
}
