package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/checkout"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/support"
)

func newReport(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	file := ""
	c := &cobra.Command{
		Use:   "report",
		Short: "List, and with --file write, what a bug report needs: versions, objects, events and logs, without secrets",
		Long: `Lists the files of a support bundle, with their sizes. With --file it writes them as a tar.gz archive too. The bundle has versions, the objects of the
driver, events, the end of the logs of its pods, its PersistentVolumes and VolumeAttachments. It also has what the commands list, operations, orphans and
lost print.

No Secret is read. In everything else, passwords, tokens, credentials in addresses, headers and private keys are replaced by REDACTED. Names
of claims, nodes, servers and namespaces stay: look at the files before you give them away.

It changes nothing in the cluster and the cloud. With a hosted control plane the controller runs in another cluster: name that with
--controller-kubeconfig, and the namespace there with --driver-namespace. Exit code 0: everything was read. 1: something was not. 64: wrong usage.`,
		Example: "  kubectl cinder report --os-cloud mycloud\n  kubectl cinder report --os-cloud mycloud --file report.tar.gz",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.report(cmd.Context(), file) },
	}
	v.flags(c)
	v.controllerFlags(c)
	c.Flags().StringVar(&file, "file", "", "the archive to write; it must not exist")
	return c
}

func (v *command) report(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from, err := v.sources(ctx)
	if err != nil {
		return err
	}
	defer from.Cloud.Close()
	b := support.Collect(ctx, from, support.NewRedactor(v.ownSecrets(from)...), v.Version)
	if file != "" {
		if err := writeArchive(file, b, v.now()); err != nil {
			return err
		}
	}
	err = show(v, b, support.Print)
	switch {
	case err != nil:
		return err
	case len(b.Unseen) > 0:
		return fmt.Errorf("%w: %d things, which the list names", ErrUnread, len(b.Unseen))
	}
	return nil
}

// ownSecrets are those with which this command logs in. Logs of a proxy or a debug page may have them.
func (v *command) ownSecrets(from diagnosis.Clients) []string {
	own := from.Cluster.Credentials()
	if from.Controller != nil {
		own = append(own, from.Controller.Credentials()...)
	}
	source := v.cloud
	source.Env = v.Env
	s, err := cloud.FromSource(source)
	if err != nil {
		return own // then there is no login, and the bundle says why
	}
	return append(own, string(s.Password), string(s.ApplicationCredentialSecret), string(s.Token))
}

// writeArchive writes the archive for its owner only. It replaces no file.
func writeArchive(file string, b support.Archive, at time.Time) error {
	if err := checkout.CheckLinks(file); err != nil {
		return fmt.Errorf("%w: --file %s: %w", ErrUsage, file, err)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: --file %s exists already; name another file, or delete it", ErrUsage, file)
	}
	if err != nil {
		return fmt.Errorf("%w: --file: %w", ErrUsage, err)
	}
	err = support.Write(out, b, at)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file)
		return fmt.Errorf("write the bundle to %s: %w; nothing was left there", file, err)
	}
	return nil
}
