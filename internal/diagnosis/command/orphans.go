package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func newOrphans(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	id := ""
	c := &cobra.Command{
		Use:   "orphans",
		Short: "List what this cluster left in Cinder: volumes, snapshots and backups that nothing names",
		Long: `Lists the volumes, snapshots and backups in the project that have the mark of this cluster, and that no PersistentVolume and no
VolumeSnapshotContent names. The mark is the cluster ID of the driver, in the metadata of each object.

With a hosted control plane the controller runs in another cluster: name that with --controller-kubeconfig, and the namespace there with
--driver-namespace. It deletes nothing. It can be wrong: another cluster in the project may have the same ID. After a restore of an older etcd, live data may have no
object. A volume that is being created has none yet. Exit code 0: no orphan. 1: there are orphans, or a list could not be read. 64: wrong usage.`,
		Example: "  kubectl cinder orphans --os-cloud mycloud --cluster-id production",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.orphans(cmd.Context(), id) },
	}
	v.flags(c)
	c.Flags().StringVar(&id, "cluster-id", "", "the mark to look for; default: that of the driver in this cluster")
	v.controllerFlags(c)
	_ = c.RegisterFlagCompletionFunc("cluster-id", cobra.NoFileCompletions)
	return c
}

func (v *command) orphans(ctx context.Context, id string) error {
	k, err := v.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from := diagnosis.Clients{Cluster: k, Namespace: v.namespace, Given: v.given(), Now: v.now()}
	if err := v.controllerOf(&from); err != nil {
		return err
	}
	if from.Cloud, err = v.login(ctx); err != nil {
		return wrongUsage(fmt.Errorf("orphans are in the cloud: %w; %s", err, loginAdvice(err)),
			errNoCredentials, cloud.ErrUnknownCloud, cloud.ErrBadFile, cloud.ErrMisconfigured)
	}
	defer from.Cloud.Close()
	o, err := diagnosis.FindOrphans(ctx, from, id)
	if err != nil {
		return wrongUsage(err, diagnosis.ErrClusterID, diagnosis.ErrHosted)
	}
	err = show(v, o, diagnosis.PrintOrphans)
	switch {
	case err != nil:
		return err
	case len(o.Unseen) > 0:
		return fmt.Errorf("%w: there may be more than %d orphans", ErrUnread, len(o.Orphans))
	case len(o.Orphans) > 0:
		return fmt.Errorf("%w: %d orphans", ErrFindings, len(o.Orphans))
	}
	return nil
}

// wrongUsage marks an error as one of the command line, if it is one of these.
func wrongUsage(err error, kinds ...error) error {
	if slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return err
}
