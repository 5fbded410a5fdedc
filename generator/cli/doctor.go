package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
)

// preflight is the flags of doctor.
type preflight struct {
	from        source
	target      string
	kube        cluster.Source
	skipCluster bool
	output      string
	traffic     doctor.Traffic
}

func newDoctorCommand(w *World, shared *common) *cobra.Command {
	p := preflight{from: source{common: shared}}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check before an installation whether the cloud and the cluster can take the bundle",
		Long: `Checks the cloud, the registries of the images, and the cluster of the kubeconfig, and changes nothing: each request is a GET or a HEAD.
On OpenShift a SubjectAccessReview, which the API server does not store, asks for the rights of the pods. Each finding says what was seen, why it matters and what to do. What cannot be checked without a change is listed as not checked.

The cluster is that of kubectl: --kubeconfig or KUBECONFIG or ~/.kube/config, and --context. Without a kubeconfig only the cloud is
checked. Exit code 0: no errors, perhaps warnings. 1: at least one error. 64: wrong usage or configuration.`,
		Example: "  cinder-csi-generator doctor --os-cloud mycloud --config distribution.yaml --context prod",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), w) },
	}
	p.from.cloudFlags(c)
	c.AddCommand(command.New(command.World{
		Stdout: w.data, Stderr: w.Stderr, Columns: w.Columns, Env: w.Env, Version: w.Version, Connect: w.Connect, Kubernetes: w.Kubernetes, Now: w.Now,
	}, &shared.timeout))
	targetFlag(c, &p.target, string(v1alpha1.Vanilla))
	clusterFlags(c, &p.kube)
	c.Flags().BoolVar(&p.skipCluster, "skip-cluster", false, "do not check a cluster, even if there is a kubeconfig")
	c.Flags().StringVarP(&p.output, "output", "o", asTable, "table or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asTable, asJSON}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func clusterFlags(c *cobra.Command, s *cluster.Source) {
	c.Flags().StringVar(&s.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default KUBECONFIG, then ~/.kube/config")
	c.Flags().StringVar(&s.Context, "context", "", "context in the kubeconfig; default its current one")
}

func (p *preflight) run(ctx context.Context, w *World) error {
	if err := oneOf("--output", p.output, []string{asTable, asJSON}); err != nil {
		return err
	}
	if err := oneOf("--target", p.target, targets); err != nil {
		return err
	}
	k, err := p.cluster(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.from.timeout, fmt.Errorf("no complete answer within %s (--timeout)", p.from.timeout))
	defer cancel()
	r, err := p.check(ctx, w, k)
	if err != nil {
		return err
	}
	r.Sort()
	if err := print(w, p.output, r, forPeople{table: func(out io.Writer) error { return report.Doctor(out, r, w.columns()) }}); err != nil {
		return err
	}
	if n := r.Count(doctor.Error); n > 0 {
		return &exit{Failure, fmt.Errorf("%d of %d findings are errors", n, len(r.Findings))}
	}
	return nil
}

// cluster is nil if there is none to check.
func (p *preflight) cluster(w *World) (*cluster.Cluster, error) {
	if p.skipCluster {
		return nil, nil
	}
	return w.connectCluster(p.kube)
}

// connectCluster is nil without a kubeconfig.
func (w *World) connectCluster(s cluster.Source) (*cluster.Cluster, error) {
	k, err := w.Kubernetes(s)
	switch {
	case errors.Is(err, cluster.ErrNoKubeconfig):
		return nil, nil
	case errors.Is(err, cluster.ErrKubeconfig):
		return nil, &exit{Usage, err}
	}
	return k, err
}

func (p *preflight) check(ctx context.Context, w *World, k *cluster.Cluster) (*doctor.Report, error) {
	p.traffic.Now = w.now
	p.from.traffic = &p.traffic
	c, err := p.from.connect(ctx, w)
	if err != nil && codeOf(err) == Usage {
		return nil, err
	}
	if err != nil {
		r := doctor.NewReport(p.from.cloudName)
		r.LoginFailed(err)
		return r, nil
	}
	defer c.Close()
	r := doctor.NewReport(c.Name())
	inventory, err := inspect.Inspect(ctx, c, w.progress())
	w.endProgress()
	if err != nil {
		return nil, err
	}
	inventory.Simulated = p.from.simulated
	decided, objects, err := p.bundle(inventory, w.Version)
	if err != nil {
		return nil, err
	}
	r.CheckCloud(ctx, c, &p.traffic, inventory, p.want(decided))
	return r, p.checkBundle(ctx, w, r, k, inventory, decided, objects)
}

// bundle renders what generate would write. It is nil if a fact that it needs is missing: then the findings about the cloud say so.
func (p *preflight) bundle(inventory v1alpha1.Inventory, version string) (*plan.Result, []verify.Object, error) {
	decided, err := plan.Decide(inventory, p.from.distribution, v1alpha1.Target(p.target), v1alpha1.Kustomize, version)
	var unanswered *plan.FactError
	if errors.As(err, &unanswered) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	tree, err := bundle.Render(decided, verify.Chart, bundle.Options{})
	if err != nil {
		return nil, nil, usage("the bundle cannot be rendered: %w", err)
	}
	objects, _, err := verify.Bundle(tree, decided.Target, decided.Format)
	return &decided, objects, err
}

// ownerNames are the owners of a Secret that put the CA of the cloud into it.
var ownerNames = map[string]string{plan.CredentialOperator: "OpenShift's Cloud Credential Operator, from OpenShift 4.19 on,", plan.HyperShift: "HyperShift"}

func (p *preflight) want(decided *plan.Result) doctor.Want {
	spec := p.from.distribution.Spec
	credentials := spec.Credentials
	want := doctor.Want{CABundle: credentials.CABundle != "" || credentials.CAConfigMap != "" || credentials.CAKey != "" || spec.TrustedCA, Weaknesses: p.from.weaknesses}
	if decided != nil {
		want.CAOwner, want.Secret = ownerNames[decided.Credentials.Value.Owner], decided.Credentials.Value.SecretName
		want.Zones, want.ZonesWhy = decided.Topology.Value, decided.Topology.Reason
	}
	return want
}

// checkBundle checks what only a rendered bundle can say: its images, and its place in the cluster.
func (p *preflight) checkBundle(ctx context.Context, w *World, r *doctor.Report, k *cluster.Cluster, inventory v1alpha1.Inventory, decided *plan.Result, objects []verify.Object) error {
	const later = "run doctor again when the errors above are gone"
	switch {
	case decided == nil:
		r.NotChecked = append(r.NotChecked, doctor.Gap{What: "the images and the cluster", Why: "there is no bundle without the facts that are missing", Do: later})
		return nil
	case decided.Target == v1alpha1.HostedControlPlane:
		r.NotChecked = append(r.NotChecked, doctor.Gap{What: "the two clusters", Why: "doctor checks one cluster, and a hosted control plane has two", Do: "follow the prerequisites in the README.md of the bundle"})
	case k == nil:
		r.NotChecked = append(r.NotChecked, doctor.Gap{What: "the cluster", Why: "there is no kubeconfig, or --skip-cluster was given", Do: "run doctor with --kubeconfig or KUBECONFIG"})
	}
	b, err := cluster.ReadBundle(fieldsOf(objects))
	if err != nil {
		return err
	}
	r.CheckImages(ctx, b.Images(), w.Registry)
	if k == nil || decided.Target == v1alpha1.HostedControlPlane {
		return nil
	}
	r.CheckCluster(ctx, k, doctor.Install{
		Bundle: b, KubernetesVersion: decided.Config.KubernetesVersion, Snapshots: decided.SnapshotClass.Value.Enabled, ComputeZones: computeZones(inventory),
	})
	return nil
}

func fieldsOf(objects []verify.Object) []map[string]any {
	var all []map[string]any
	for _, o := range objects {
		all = append(all, o.Fields)
	}
	return all
}

// computeZones is nil if they are not known.
func computeZones(inventory v1alpha1.Inventory) []string {
	if inventory.Zones.Compute.State != v1alpha1.Known {
		return nil
	}
	return slices.Compact(v1alpha1.ZoneNames(inventory.Zones.Compute.Value))
}

func (w *World) now() time.Time {
	if w.Now == nil {
		return time.Now()
	}
	return w.Now()
}
