package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// ErrDecide are recovered objects that are not valid until a person decides.
var ErrDecide = errors.New("a person must decide")

// recovering is the flags of recover.
type recovering struct {
	diagnosis.RecoverOptions
	classes, zones []string
	fromCluster    bool
}

func newRecover(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	var r recovering
	c := &cobra.Command{
		Use:   "recover",
		Short: "Write the PersistentVolumes, claims and snapshots of a lost cluster, from Cinder's metadata alone",
		Long: `Reads the volumes, snapshots and backups in the project that have the mark of a lost cluster. For each it writes the objects with which
another cluster takes it over: a PersistentVolume and its claim, or a VolumeSnapshotContent and its VolumeSnapshot. They are sorted by
namespace. Comments say what to do first, and what Cinder does not know. It needs no cluster, and changes nothing, neither there nor in the cloud.

Where the metadata leaves something open, FILL-IN stands in the object, and no API server accepts it. Volumes of upstream's plugin and of
earlier versions have no volume mode in their metadata. No node of this driver formats a recovered volume.

Output commands prints the commands that detach the volumes from the servers of the lost cluster. With --new-cluster-id it also prints those
that change the mark. Exit code 0: all objects are complete. 1: some need a decision,
or a list could not be read. 64: wrong usage.`,
		Example: `  kubectl cinder recover --cluster-id production --os-cloud mycloud > recovered.yaml
  kubectl cinder recover --cluster-id production --new-cluster-id blue -o commands --os-cloud mycloud`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.recover(cmd.Context(), r) },
	}
	v.flags(c)
	f := c.Flags()
	f.Lookup("output").Usage, f.Lookup("output").DefValue, v.output = "yaml, json, table or commands", asYAML, asYAML
	f.StringVar(&r.Cluster, "cluster-id", "", "the ID of the lost cluster; without it the command lists those in the project")
	f.StringVar(&r.New, "new-cluster-id", "", "the ID of the new cluster, if it must have another")
	f.StringVarP(&r.Namespace, "namespace", "n", "", "only claims and snapshots of this namespace; default all")
	f.StringSliceVar(&r.IDs, "id", nil, "only the volumes, snapshots and backups with these IDs; default all")
	f.StringVar(&r.Driver, "driver-name", contract.DriverName, "the name of the driver in the new cluster")
	f.StringSliceVar(&r.classes, "storage-class", nil, "TYPE=CLASS: the StorageClass for volumes of a type; CLASS alone: for all others")
	f.BoolVar(&r.fromCluster, "classes-from-cluster", false, "read the StorageClasses of the new cluster (--kubeconfig): the only one of a volume type is that of its volumes")
	f.StringSliceVar(&r.zones, "zone-map", nil, "COMPUTEZONE=VOLUMEZONE, as in the configuration of the driver; default: zones have the same names")
	f.BoolVar(&r.AnyZone, "without-topology", false, "name no zones: for a driver with --with-topology=false")
	for _, name := range []string{"cluster-id", "new-cluster-id", "namespace", "id", "driver-name", "storage-class", "zone-map"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

const asCommands = "commands"

// options checks the flags.
func (r *recovering) options(output string) error {
	if forms := []string{asYAML, asJSON, asTable, asCommands}; !slices.Contains(forms, output) {
		return fmt.Errorf("%w: --output %q: want %s", ErrUsage, output, strings.Join(forms, ", "))
	}
	if !shell.IsName(r.Driver) {
		return fmt.Errorf("%w: --driver-name %q is no name of a driver", ErrUsage, r.Driver)
	}
	if r.Namespace != "" && !shell.IsLabel(r.Namespace) {
		return fmt.Errorf("%w: --namespace %q is no namespace", ErrUsage, r.Namespace)
	}
	if i := slices.IndexFunc(r.IDs, func(id string) bool { return !shell.IsID(id) }); i >= 0 {
		return fmt.Errorf("%w: --id %q is no ID of Cinder", ErrUsage, r.IDs[i])
	}
	r.Classes, r.Zones = map[string]string{}, contract.ZoneMap{}
	for _, text := range r.classes {
		kind, class, found := strings.Cut(text, "=")
		if !found {
			kind, class = "", text
		}
		if !shell.IsName(class) {
			return fmt.Errorf("%w: --storage-class %q: want TYPE=CLASS or CLASS", ErrUsage, text)
		}
		r.Classes[kind] = class
	}
	for _, text := range r.zones {
		compute, zone, _ := strings.Cut(text, "=")
		r.Zones[compute] = zone
	}
	if err := r.Zones.Check(); err != nil {
		return fmt.Errorf("%w: --zone-map: %w", ErrUsage, err)
	}
	return nil
}

func (v *command) recover(ctx context.Context, r recovering) error {
	if err := r.options(v.output); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	if r.fromCluster {
		if err := v.readClasses(ctx, &r); err != nil {
			return err
		}
	}
	c, err := v.login(ctx)
	if err != nil {
		return wrongUsage(fmt.Errorf("the volumes are in the cloud: %w; %s", err, loginAdvice(err)),
			errNoCredentials, cloud.ErrUnknownCloud, cloud.ErrBadFile, cloud.ErrMisconfigured)
	}
	defer c.Close()
	lost, err := diagnosis.ReadRemains(ctx, c)
	if err != nil {
		return err
	}
	if r.Cluster == "" {
		return fmt.Errorf("%w: name the lost cluster with --cluster-id; %s", ErrUsage, marksText(lost.Marks()))
	}
	r.OpenStack = v.given()["openstack"]
	recovery := diagnosis.Recover(lost, r.RecoverOptions)
	if err := v.printRecovery(recovery); err != nil {
		return err
	}
	switch n := recovery.FillIns(); {
	case len(recovery.Objects) == 0 && len(recovery.LeftOut) == 0 && len(r.IDs) > 0:
		return fmt.Errorf("%w: nothing with the mark %q has an ID of --id; %s lists the IDs", ErrUnread, r.Cluster, v.given().Command("kubectl", "cinder", "orphans"))
	case len(recovery.Objects) == 0 && len(recovery.LeftOut) == 0:
		return fmt.Errorf("%w: nothing in the project has the mark %q; %s", ErrUnread, r.Cluster, marksText(lost.Marks()))
	case len(recovery.Gaps) > 0:
		return fmt.Errorf("%w: %s", ErrUnread, recovery.Gaps[0].What)
	case n > 0:
		return fmt.Errorf("%w: %d of %d objects contain %s; the comments above them say what it stands for", ErrDecide, n, len(recovery.Objects), diagnosis.FillIn)
	}
	return nil
}

// readClasses adds the StorageClasses of the new cluster to those of the flags, which win.
func (v *command) readClasses(ctx context.Context, r *recovering) error {
	k, err := v.Kubernetes(v.kube)
	if err != nil {
		return fmt.Errorf("%w: --classes-from-cluster: %w; name the new cluster with --kubeconfig", ErrUsage, err)
	}
	classes, err := diagnosis.ClassesOf(ctx, k, r.Driver)
	if err != nil {
		return err
	}
	maps.Copy(classes, r.Classes)
	r.Classes = classes
	return nil
}

func (v *command) printRecovery(r diagnosis.Recovery) error {
	switch v.output {
	case asTable:
		return diagnosis.PrintRecoveryTable(v.Stdout, r, v.columns())
	case asCommands:
		return diagnosis.PrintCommands(v.Stdout, r)
	case asJSON:
		items := []any{}
		for _, o := range r.Objects {
			items = append(items, o.Documents...)
		}
		return v.document(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	return diagnosis.PrintRecovery(v.Stdout, r, v.columns())
}

func marksText(marks map[string]int) string {
	if len(marks) == 0 {
		return "no volume in this project has the mark of a cluster"
	}
	var texts []string
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		texts = append(texts, fmt.Sprintf("%q (%s)", mark, diagnosis.Counted(marks[mark], "volume")))
	}
	return "this project has " + strings.Join(texts, ", ")
}
