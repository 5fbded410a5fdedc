package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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

It deletes nothing. It can be wrong: another cluster in the project may have the same ID. After a restore of an older etcd, live data may have no
object. A volume that is being created has none yet. Exit code 0: no orphan. 1: there are orphans. 64: wrong usage.`,
		Example: "  kubectl cinder orphans --os-cloud mycloud --cluster-id production",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.orphans(cmd.Context(), id) },
	}
	v.flags(c)
	c.Flags().StringVar(&id, "cluster-id", "", "the mark to look for; default: that of the driver in this cluster")
	c.Flags().StringVar(&v.namespace, "driver-namespace", "", "namespace of the controller; default: look for its pods in all namespaces")
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
	from := diagnosis.Sources{Cluster: k, Namespace: v.namespace, Now: v.now()}
	var gap diagnosis.Gap
	if from.Cloud, gap = v.connect(ctx); from.Cloud == nil {
		return fmt.Errorf("%w: orphans are in the cloud: %s; %s", ErrUsage, gap.Why, gap.Do)
	}
	defer from.Cloud.Close()
	o, err := diagnosis.FindOrphans(ctx, from, id)
	if errors.Is(err, diagnosis.ErrClusterID) {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if err != nil {
		return err
	}
	if v.output == asTable {
		err = diagnosis.PrintOrphans(v.Stdout, o, v.columns())
	} else {
		err = v.document(o)
	}
	if len(o.Orphans) > 0 && err == nil {
		return fmt.Errorf("%w: %d orphans", ErrFindings, len(o.Orphans))
	}
	return err
}
