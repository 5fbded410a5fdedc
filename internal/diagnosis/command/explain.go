package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

func newExplain(w World) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [ID]",
		Short: "Say what a cause of an error means, and what to do",
		Long: `Prints the cause with this ID: what it means, what removes it, and who can do that. The driver writes the ID at the end of each error, so
kubectl describe shows it: [attach.reserved]. A whole message may stand in place of the ID. Without an argument it lists every cause.

It reads neither the cluster nor the cloud. Exit code 0. 64: there is no such cause.`,
		Example: "  kubectl cinder explain attach.reserved\n  kubectl cinder explain",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCauses(w.Stdout)
			}
			return explainCause(w.Stdout, strings.Join(args, " "))
		},
		ValidArgsFunction: cobra.FixedCompletions(causeIDs(), cobra.ShellCompDirectiveNoFileComp),
	}
}

func causeIDs() (ids []string) {
	for _, c := range cause.All() {
		ids = append(ids, string(c.ID)+"\t"+c.Means)
	}
	return ids
}

func listCauses(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range cause.All() {
		fmt.Fprintln(table, string(c.ID)+"\t"+c.Means)
	}
	return table.Flush()
}

// explainCause prints the cause that a person names by its ID, or by a message that has it. Errors: ErrUsage if there is none.
func explainCause(out io.Writer, named string) error {
	id := cause.ID(strings.Trim(named, "[] "))
	row, found := cause.Find(id)
	if !found {
		row, found = cause.Find(cause.In(named))
	}
	if found {
		_, err := fmt.Fprint(out, row.Text())
		return err
	}
	hint := "kubectl cinder explain lists all"
	if near := cause.Near(id); len(near) > 0 {
		hint = fmt.Sprint("did you mean one of ", strings.Trim(fmt.Sprint(near), "[]"), "?")
	}
	return fmt.Errorf("%w: there is no cause %q; %s", ErrUsage, named, hint)
}
