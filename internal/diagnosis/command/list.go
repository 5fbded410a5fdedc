package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

// ErrFindings is a list with volumes that need attention: the list says which.
var ErrFindings = errors.New("findings")

// ErrUnread is a list without findings that was not read completely: what it does not show may be wrong.
var ErrUnread = errors.New("not everything could be read")

func newList(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	wrong := false
	c := &cobra.Command{
		Use:   "list",
		Short: "List every volume of the driver, and what Kubernetes and Cinder say differently",
		Long: `Lists each PersistentVolume of the driver with its claim, pods, nodes, and the volume in Cinder. A finding is a volume that Cinder does not
have, or shows in an error status, or smaller than the PersistentVolume. So is an attachment that only one of both shows, and an attach or
detach that fails or takes more than two minutes. The last line counts claims without a volume.

It changes nothing. Kubernetes and Cinder are read one after the other: a volume that changes meanwhile may have a finding that the next
list does not have. Credentials of another project make every volume look lost. Exit code 0: no finding. 1: there are findings, or something could not be
read: Cinder, a list of Kubernetes, or the server of a node.
64: wrong usage.`,
		Example: "  kubectl cinder list --os-cloud mycloud\n  kubectl cinder list -n shop --wrong",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.list(cmd.Context(), wrong) },
	}
	v.flags(c)
	c.Flags().StringVarP(&v.objects, "namespace", "n", "", "only volumes of claims in this namespace; default all")
	c.Flags().BoolVar(&wrong, "wrong", false, "only volumes with a finding")
	_ = c.RegisterFlagCompletionFunc("namespace", v.completeNamespaces)
	return c
}

func (v *command) list(ctx context.Context, wrong bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from, err := v.sources(ctx)
	if err != nil {
		return err
	}
	defer from.Cloud.Close()
	readings, err := diagnosis.ReadList(ctx, from)
	if err != nil {
		return err
	}
	l := diagnosis.List(readings)
	l.Volumes = slices.DeleteFunc(l.Volumes, func(r diagnosis.Row) bool {
		return wrong && len(r.Findings) == 0 || v.objects != "" && !strings.HasPrefix(r.Claim, v.objects+"/")
	})
	l.Pending = slices.DeleteFunc(l.Pending, func(claim string) bool { return v.objects != "" && !strings.HasPrefix(claim, v.objects+"/") })
	err = show(v, l, func(out io.Writer, l diagnosis.Listing, columns int) error {
		return diagnosis.PrintList(out, l, v.given(), columns)
	})
	n := l.Wrong()
	switch {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("%w: %s; for one see: %s", ErrFindings, diagnosis.Counted(n, "volume"), v.given().Command("kubectl", "cinder", "volume", "ID"))
	case !l.CinderRead:
		return fmt.Errorf("%w: the volumes in Cinder were not compared", ErrUnread)
	case len(l.Unseen) > 0:
		return fmt.Errorf("%w: %s", ErrUnread, l.Unseen[0].What)
	}
	return nil
}
