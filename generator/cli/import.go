package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/checkout"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/secret"
)

type importRun struct {
	from   source
	kube   cluster.Source
	clouds string   // where clouds.yaml is written; empty: nowhere
	old    []string // namespaces of the other installation
}

func newImportCommand(w *World, shared *common) *cobra.Command {
	run := importRun{from: source{common: shared}}
	c := &cobra.Command{
		Use:   "import [FILE|DIR...]",
		Short: "Propose a configuration from cloud.conf, chart values, manifests, a running installation, or objects of OpenShift and HyperShift",
		Long: `Reads the configuration of another installation and prints a Distribution for --config. Each FILE is a cloud.conf, the values of the chart
openstack-cinder-csi, or YAML with Kubernetes objects (- is stdin). It reads upstream's workloads and classes, PersistentVolumes, and objects
of OpenShift and HyperShift. Below each DIR, such as that of "oc adm must-gather", it reads every file that ends in .yaml, .yml, .json or .conf.
Messages say key by key what became of it, or why it was left out. An unknown key of cloud.conf is an error. So are two files with
different values for one key.

With --kubeconfig or --context it also reads what runs in a cluster, with GET requests: workloads, classes, PersistentVolumes, and the
ConfigMaps of the plugin. If several namespaces have configuration of a Cinder driver, --old-namespace names those to read. The zones of existing volumes are kept, or import refuses (exit 3) and says what is missing. With --os-cloud or
--inventory it maps compute zones to volume zones.

Credentials are never printed. Of a Secret only the names are read. --clouds-yaml converts those of a cloud.conf to a new file with mode 0600.`,
		Example: "  cinder-csi-generator import --kubeconfig ~/.kube/config --os-cloud mycloud cloud.conf --clouds-yaml driver-clouds.yaml > distribution.yaml\n" +
			"  helm get values cinder-csi --namespace kube-system > values.yaml\n  cinder-csi-generator import values.yaml > distribution.yaml",
		RunE: func(cmd *cobra.Command, args []string) error { return run.run(cmd.Context(), w, args) },
	}
	run.from.flags(c)
	clusterFlags(c, &run.kube)
	c.Flag("kubeconfig").Usage = "kubeconfig of a cluster with the other installation, to read that too"
	c.Flags().StringArrayVar(&run.old, "old-namespace", nil, oldNamespaceUsage)
	c.Flags().StringVar(&run.clouds, "clouds-yaml", "", "write the credentials of the cloud.conf to this new file, as clouds.yaml with mode 0600")
	return c
}

func (r *importRun) run(ctx context.Context, w *World, args []string) error {
	if r.clouds == "-" {
		return usage("--clouds-yaml - would print the credentials; name a new file")
	}
	files, err := r.files(ctx, w, args)
	if err != nil {
		return err
	}
	in := migrate.Importer{CloudsYAML: r.clouds, Namespaces: r.old}
	if in.Zones, err = r.zones(ctx, w); err != nil {
		return err
	}
	distribution, notes, err := in.Import(files)
	switch {
	case errors.Is(err, migrate.ErrZones):
		return &exit{Refused, err}
	case errors.Is(err, migrate.ErrFile), errors.Is(err, migrate.ErrSeveral):
		return &exit{Usage, err}
	case err != nil:
		return err
	}
	if r.clouds != "" {
		if err := r.writeClouds(&in, cmp.Or(distribution.Spec.Credentials.Cloud, v1alpha1.DefaultCloudEntry)); err != nil {
			return err
		}
	}
	for _, n := range notes {
		fmt.Fprintln(w.Stderr, printable.Line(secret.Hide(n.String()))) // a name of others has no line of its own
	}
	if r.clouds != "" {
		fmt.Fprintf(w.Stderr, "%s has the credentials of cloud.conf, with mode 0600\n", r.clouds)
	}
	return print(w, asYAML, distribution, forPeople{})
}

// files are those of the arguments, and what runs in the cluster.
func (r *importRun) files(ctx context.Context, w *World, args []string) (iter.Seq2[migrate.File, error], error) {
	if r.kube == (cluster.Source{}) {
		if len(args) == 0 {
			return nil, usage("nothing to import: name a FILE or a DIR, or a cluster with --kubeconfig or --context")
		}
		return filesOf(w, args), nil
	}
	k, err := w.connectCluster(r.kube)
	if err == nil && k == nil {
		err = usage("there is no kubeconfig: name one with --kubeconfig")
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(migrate.File, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, r.from.timeout)
		defer cancel()
		for f, err := range migrate.Live(ctx, k) {
			if !yield(f, err) {
				return
			}
		}
		filesOf(w, args)(yield)
	}, nil
}

// zones are those of the cloud, if one is named.
func (r *importRun) zones(ctx context.Context, w *World) (*migrate.Zones, error) {
	if r.from.cloudName == "" && r.from.inventory == "" && !r.from.simulated {
		return nil, r.from.check()
	}
	inv, err := r.from.read(ctx, w)
	if err != nil {
		return nil, err
	}
	names := func(name string, fact v1alpha1.Fact[[]v1alpha1.Zone]) (all []string, err error) {
		if fact.State != v1alpha1.Known {
			return nil, fmt.Errorf("the %s zones of the cloud are not known (%s): %s", name, fact.State, fact.Reason)
		}
		return v1alpha1.ZoneNames(fact.Value), nil
	}
	compute, err := names("compute", inv.Zones.Compute)
	if err != nil {
		return nil, err
	}
	volume, err := names("volume", inv.Zones.Volume)
	return &migrate.Zones{Compute: compute, Volume: volume}, err
}

// writeClouds makes a new file: the mode of one that exists may let others read the credentials.
func (r *importRun) writeClouds(in *migrate.Importer, entry string) error {
	conf, err := in.CloudConf()
	if err != nil {
		return &exit{Usage, err}
	}
	settings, err := cloud.FromConf(conf, "", func(string) string { return "" })
	if err != nil {
		return &exit{Usage, err}
	}
	settings.CACertFile, settings.CertFile, settings.KeyFile = "", "", "" // the pods of a bundle do not have these files
	content, err := settings.CloudsYAML(entry)
	if err != nil {
		return err
	}
	if err := checkout.CheckLinks(r.clouds); err != nil {
		return usage("--clouds-yaml %s: %w", r.clouds, err)
	}
	f, err := os.OpenFile(r.clouds, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("--clouds-yaml %s exists; name a new file", r.clouds)
	}
	if err != nil {
		return fmt.Errorf("the credentials cannot be written: %w", err)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// importable are the names of files that import reads in a directory.
var importable = []string{".yaml", ".yml", ".json", ".conf"}

// filesOf reads the arguments, and the files below those that are directories, one at a time.
func filesOf(w *World, args []string) iter.Seq2[migrate.File, error] {
	return func(yield func(migrate.File, error) bool) {
		for _, arg := range args {
			if info, err := os.Stat(arg); arg == "-" || err != nil || !info.IsDir() {
				content, err := readFile(w, arg)
				if why := notImported(arg, content); err == nil && why != "" {
					err = usage("%s", why)
				}
				if !yield(migrate.File{Name: arg, Content: content}, err) {
					return
				}
				continue
			}
			if own, _ := worktree.Open(arg); own != nil && (own.Plan != nil || own.Damaged != "") {
				yield(migrate.File{}, usage("%s is a bundle of this generator, and import reads other installations. %s has its configuration", arg, filepath.Join(arg, worktree.PlanFile)))
				return
			}
			if !filesBelow(w, arg, yield) {
				return
			}
		}
	}
}

// filesBelow says on stderr which files it does not look at. Its result is whether the caller wants more.
func filesBelow(w *World, dir string, yield func(migrate.File, error) bool) bool {
	others, given, more := 0, 0, true
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular() || !slices.Contains(importable, filepath.Ext(path)):
			others++
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > largestInput {
			fmt.Fprintf(w.Stderr, "%s: the file: left out: it is larger than %d bytes; copy the objects with settings into a smaller file\n", printable.Line(path), largestInput)
			return err
		}
		given++
		content, err := readFile(w, path)
		if more = yield(migrate.File{Name: path, Directory: dir, Content: content}, err); !more {
			return fs.SkipAll
		}
		return nil
	})
	if others > 0 {
		fmt.Fprintf(w.Stderr, "%s: %d other files: left out: import reads files that end in .yaml, .yml, .json or .conf\n", printable.Line(dir), others)
	}
	if err == nil && given == 0 {
		err = usage("%s has no file that import reads", dir)
	}
	if err != nil {
		return yield(migrate.File{}, err)
	}
	return more
}
