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

	last      *v1alpha1.Plan     // of the bundle that is there; nil: none
	inventory v1alpha1.Inventory // what decide decided on
	failures  []string           // those of the warnings of decide that say that something fails
	kept      []string           // facts that this credential may not read, and that decide took from last
}

var (
	targets = []string{string(v1alpha1.Vanilla), string(v1alpha1.Standalone), string(v1alpha1.HostedControlPlane)}
	formats = []string{string(v1alpha1.Kustomize), string(v1alpha1.Helm)}
)

func (d *decision) flags(c *cobra.Command) {
	d.from.flags(c)
	targetFlag(c, &d.target, "")
}

func targetFlag(c *cobra.Command, target *string, otherwise string) {
	c.Flags().StringVar(target, "target", otherwise, "where the bundle is installed: "+strings.Join(targets, ", "))
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
	if d.last != nil {
		inventory, d.kept = plan.Remember(*d.last, inventory)
	}
	d.inventory = inventory
	r, err := plan.Again(d.last, inventory, d.from.distribution, v1alpha1.Target(d.target), format, w.Version)
	if err != nil {
		return plan.Result{}, err
	}
	d.failures = r.Failures
	for _, line := range slices.Concat(r.Warnings, r.Notices, d.kept) {
		w.warn(line)
	}
	if line := d.caWarning(r); line != "" {
		w.warn(line)
	}
	return r, nil
}

// caWarning says that the pods need the CA that this login used. No decision rests on it: an inventory that was saved does not have it.
func (d *decision) caWarning(r plan.Result) string {
	c := r.Credentials.Value
	if d.from.caFile == "" || r.CASource.Value.ConfigMap != "" || r.CAKey.Value != "" || c.Owner != "" {
		return ""
	}
	return fmt.Sprintf("this login trusts the CA file %s, and the configuration names none for the pods. The driver cannot log in without its certificates: put them into the key cacert of Secret %s, or into spec.credentials.caBundle",
		d.from.caFile, c.SecretName)
}

func oneOf(flag, value string, allowed []string) error {
	switch {
	case value == "":
		return usage("%s is missing: one of %s", flag, strings.Join(allowed, ", "))
	case !slices.Contains(allowed, value):
		return usage("%s %q: want one of %s%s", flag, value, strings.Join(allowed, ", "), meaning(flag, value, allowed))
	}
	return nil
}

func newPlanCommand(w *World, shared *common) *cobra.Command {
	d := decision{from: source{common: shared}}
	var output, saved, part, status string
	c := &cobra.Command{
		Use:   "plan --target T",
		Short: "Print what generate would decide, each decision with value, reason and facts",
		Long: `Prints the decisions that generate would make, each with its value, its reason and its facts. What the cloud decided comes first. With --check FILE it compares them with a plan
that was saved, and prints one line for each change. It exits 0 when the decisions are the same, and 2 when they are not. With --status-configmap it also writes the
result into a ConfigMap: of the cluster of the kubeconfig, or else of the pod.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if part != "" {
				if err := oneOf("--from", part, report.Parts); err != nil {
					return err
				}
				if saved != "" || output != asTable {
					return usage("--from is for the table: a document of a part is no plan")
				}
			}
			if err := checkStatusFlag(status, saved); err != nil {
				return err
			}
			if saved != "" {
				return d.checkAndTell(cmd.Context(), w, saved, output, status)
			}
			if err := checkOutput(output, withPage); err != nil {
				return err
			}
			r, err := d.decide(cmd.Context(), w, v1alpha1.Kustomize) // no decision depends on the format
			if err != nil {
				return err
			}
			document := r.Document(nil)
			document.Format, document.Files = "", nil
			return print(w, output, document, forPeople{
				table: func(out io.Writer) error { return report.Plan(out, document, part, w.columns()) },
				page: func(out io.Writer) error {
					return report.PlanPage(out, document, d.inventory, slices.Concat(r.Warnings, r.Notices))
				},
			})
		},
	}
	d.flags(c)
	outputFlag(c, &output, withPage)
	c.Flags().StringVar(&saved, "check", "", "compare with the decisions of this plan, saved by plan -o yaml or by generate (- is stdin); with it, -o is text, json or markdown")
	_ = c.MarkFlagFilename("check", "yaml", "json")
	c.Flags().StringVar(&status, "status-configmap", "", "with --check, write the result into this ConfigMap, which must exist: NAMESPACE/NAME, or NAME")
	c.Flags().StringVar(&part, "from", "", "print only what these decided: "+strings.Join(report.Parts, ", "))
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(report.Parts, cobra.ShellCompDirectiveNoFileComp))
	return c
}
