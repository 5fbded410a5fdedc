package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func newVersion(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	client := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and which driver runs in the cluster",
		Long: `Prints the version of this program, and of the pods of the driver the image and the version that the driver itself reports. For that it
forwards a port to each pod; without this right the images are shown alone.

It changes nothing. Exit code 0: everything was read. 1: something was not, or no pod of the driver was found. 64: wrong usage.`,
		Example: "  kubectl cinder version\n  kubectl cinder version --client",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if client {
				d := diagnosis.DriverPods{Client: v.Version, Pods: []diagnosis.DriverPod{}, Unseen: []diagnosis.Gap{}}
				return show(v, d, func(out io.Writer, d diagnosis.DriverPods, _ int) error {
					_, err := fmt.Fprintln(out, "kubectl-cinder "+d.Client)
					return err
				})
			}
			return driver(cmd.Context(), v, func(ctx context.Context, from diagnosis.Clients) (diagnosis.DriverPods, error) {
				d := diagnosis.ReadDriverPods(ctx, from, v.Version)
				return d, unread(len(d.Pods), d.Unseen)
			}, diagnosis.PrintDriverPods)
		},
	}
	v.clusterFlags(c)
	v.controllerFlags(c)
	c.Flags().BoolVar(&client, "client", false, "only the version of this program; needs no cluster")
	return c
}

func newOperations(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	c := &cobra.Command{
		Use:   "operations",
		Short: "List what every pod of the driver is doing, with the claims",
		Long: `Reads /debug/operations of each controller pod and each node pod: the calls that have not succeeded yet, the oldest first. For that it forwards
a port to each pod.

It changes nothing. With a hosted control plane the controller runs in another cluster: name that with --controller-kubeconfig, and the namespace
there with --driver-namespace. Exit code 0: each pod was read. 1: some were not, or there are none. 64: wrong usage.`,
		Example: "  kubectl cinder operations",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return driver(cmd.Context(), v, func(ctx context.Context, from diagnosis.Clients) (diagnosis.AllOperations, error) {
				all := diagnosis.ReadAllOperations(ctx, from)
				return all, unread(all.Pods, all.Unseen)
			}, diagnosis.PrintOperations)
		},
	}
	v.clusterFlags(c)
	v.controllerFlags(c)
	return c
}

func unread(pods int, unseen []diagnosis.Gap) error {
	switch {
	case len(unseen) > 0:
		return fmt.Errorf("%w: %s", ErrUnread, unseen[0].What)
	case pods == 0:
		return fmt.Errorf("%w: this cluster has no pod of the driver that can be trusted; name the namespace of the controller with --driver-namespace", ErrUnread)
	}
	return nil
}

func (v *command) clients(k *cluster.Cluster) (diagnosis.Clients, error) {
	from := diagnosis.Clients{Cluster: k, Namespace: v.namespace, Page: k.PodPage, NodePage: k.PodPage, Given: v.given(), Now: v.now()}
	return from, v.controllerOf(&from)
}

// sources are the cluster, the controller's cluster and, if it can be reached, the cloud. The caller closes the cloud.
func (v *command) sources(ctx context.Context) (diagnosis.Clients, error) {
	k, err := v.cluster()
	if err != nil {
		return diagnosis.Clients{}, err
	}
	from, err := v.clients(k)
	if err == nil {
		from.Cloud, from.NoCloud = v.connect(ctx)
	}
	return from, err
}

// driver runs a command that reads the pods of the driver, and prints what it returns.
func driver[T any](ctx context.Context, v *command, read func(context.Context, diagnosis.Clients) (document T, unread error), table func(io.Writer, T, int) error) error {
	k, err := v.cluster()
	if err != nil {
		return err
	}
	from, err := v.clients(k)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	document, unread := read(ctx, from)
	if err := show(v, document, table); err != nil {
		return err
	}
	return unread
}
