package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

func newNode(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	c := &cobra.Command{
		Use:   "node NODE",
		Short: "Say which volumes a node has, how many it may have, and what waits there",
		Long: `Shows the attach limit of a node, the driver's pod there with its readiness, the start-up taint, and the server in Nova. Lists each volume that is
attached or mounted there, with its claim, pods and status in Cinder. For each volume that waits on the node it says at which step and why, as
kubectl cinder volume does.

It changes nothing. It needs no credentials of the cloud (--os-cloud or OS_*) and no right to forward a port to the driver. Without
them it lists what it could not see. With a hosted control plane the controller runs in another cluster: name that with
--controller-kubeconfig, and the namespace there with --driver-namespace. Exit code 0: nothing waits and there is no finding. 1: something waits,
there is a finding, or something could not be read, which is listed as not seen. 64: wrong usage.`,
		Example:           "  kubectl cinder node worker-1 --os-cloud mycloud\n  kubectl cinder node worker-1 -o json",
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return v.node(cmd.Context(), args[0]) },
		ValidArgsFunction: v.completeNodes,
	}
	v.flags(c)
	v.controllerFlags(c)
	return c
}

func (v *command) completeNodes(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return v.completed(c.Context(), "/api/v1/nodes", ""), cobra.ShellCompDirectiveNoFileComp
}

func (v *command) node(ctx context.Context, name string) error {
	name = strings.TrimPrefix(name, "node/")
	if !shell.IsName(name) {
		return fmt.Errorf("%w: %q is no name of a node", ErrUsage, name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from, err := v.sources(ctx)
	if err != nil {
		return err
	}
	defer from.Cloud.Close()
	readings, err := diagnosis.ReadNode(ctx, from, name)
	if err != nil {
		return err
	}
	r := diagnosis.OnNode(readings)
	for i := range r.Waiting {
		v.given().Complete(&r.Waiting[i])
	}
	err = show(v, r, diagnosis.PrintNode)
	waiting := len(r.NotDiagnosed)
	for _, w := range r.Waiting {
		if w.Hangs() {
			waiting++
		}
	}
	switch {
	case err != nil:
		return err
	case waiting > 0:
		return fmt.Errorf("%w: %s waiting on node %s", ErrHangs, diagnosis.Counted(waiting, "volume"), name)
	case len(r.Findings) > 0:
		return fmt.Errorf("%w: %d about node %s", ErrFindings, len(r.Findings), name)
	case r.State == "unknown":
		return fmt.Errorf("%w: node %s", ErrUnread, name)
	case !r.CinderRead:
		return fmt.Errorf("%w: the volumes in Cinder were not compared", ErrUnread)
	case len(r.Unseen) > 0:
		return fmt.Errorf("%w: %s", ErrUnread, r.Unseen[0].What)
	}
	return nil
}
