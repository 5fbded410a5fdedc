package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func newLost(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	c := &cobra.Command{
		Use:   "lost",
		Short: "List PersistentVolumes, snapshots and attachments whose object Cinder does not have",
		Long: `Lists each PersistentVolume whose volume is gone, and each VolumeSnapshotContent whose snapshot or backup is gone. It also lists each
VolumeAttachment without a volume, without a PersistentVolume, or that Cinder does not show. A restore of an older etcd leaves them, and so does who deletes or
detaches behind Kubernetes.

It changes nothing. Nothing is concluded from a list that is denied or fails: that is listed as not seen. Credentials of another project make every
volume look lost, and the command says so if all are. Exit code 0: nothing is lost. 1: something is, or a list could not be read. 64: wrong usage.`,
		Example: "  kubectl cinder lost --os-cloud mycloud",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.lost(cmd.Context()) },
	}
	v.flags(c)
	return c
}

func (v *command) lost(ctx context.Context) error {
	k, err := v.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from := diagnosis.Clients{Cluster: k, Given: v.given(), Now: v.now()}
	if from.Cloud, err = v.login(ctx); err != nil {
		return wrongUsage(fmt.Errorf("what is lost is seen in the cloud: %w; %s", err, loginAdvice(err)),
			errNoCredentials, cloud.ErrUnknownCloud, cloud.ErrBadFile, cloud.ErrMisconfigured)
	}
	defer from.Cloud.Close()
	m, err := diagnosis.FindMissing(ctx, from)
	if err != nil {
		return err
	}
	err = show(v, m, diagnosis.PrintMissing)
	switch {
	case err != nil:
		return err
	case len(m.Missing) > 0:
		return fmt.Errorf("%w: %d of %d objects", ErrFindings, len(m.Missing), m.Checked)
	case len(m.Unseen) > 0:
		return fmt.Errorf("%w: %s", ErrUnread, m.Unseen[0].What)
	}
	return nil
}
