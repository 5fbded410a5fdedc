package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

const oldNamespaceUsage = "namespace of the old installation, if several have one; repeat it if its controller and its nodes are in two"

func newAdoptCommand(w *World, shared *common) *cobra.Command {
	var base string
	var old []string
	var kube cluster.Source
	c := &cobra.Command{
		Use:   "adopt DIR",
		Short: "Print how the bundle in DIR takes over from an installed driver of the same name, and the way back",
		Long: `Prints the steps from upstream's plugin to the bundle in DIR, with exact commands. The parts are what to check first, what to save, the
swap, the way back, and what stays. With a kubeconfig it names what the cluster has; without one, the objects of upstream's plain manifests.

For the target standalone with spec.openshift.coexistence adopt it prints the way from OpenShift's built-in driver.

A bundle with edited files is refused. If several namespaces have workloads of this driver, --old-namespace names those of the installation to replace. It needs a cluster.

It changes nothing: it reads the cluster with GET requests, and a person runs the commands. The target hypershift has no such way: HyperShift
sets the state of its built-in driver back.`,
		Args: oneDir,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), shared.timeout)
			defer cancel()
			a, err := readAdoption(ctx, w, args[0], base, old, kube)
			if err != nil {
				return err
			}
			return printParts(w.Stdout, a.Parts())
		},
	}
	baseFlag(c, &base)
	clusterFlags(c, &kube)
	c.Flags().StringArrayVar(&old, "old-namespace", nil, oldNamespaceUsage)
	return c
}

func readAdoption(ctx context.Context, w *World, name, base string, old []string, kube cluster.Source) (migrate.Adoption, error) {
	dir, tree, edited, err := readBundle(name)
	if err == nil {
		err = checkGivenBase(dir, base)
	}
	if err != nil {
		return migrate.Adoption{}, err
	}
	if err := adoptable(name, *dir.Plan); err != nil {
		return migrate.Adoption{}, err
	}
	// The commands delete objects by the names in the bundle, so a bundle that validate refuses gives none.
	objects, err := w.genuine(dir, base, tree, edited)
	if err != nil {
		return migrate.Adoption{}, err
	}
	b, err := cluster.ReadBundle(fieldsOf(objects))
	if err != nil {
		return migrate.Adoption{}, err
	}
	a := migrate.Adoption{Dir: filepath.ToSlash(name), Helm: dir.Plan.Format == v1alpha1.Helm, OpenShift: dir.Plan.Target == v1alpha1.Standalone, Bundle: b}
	a.ClusterID, _ = decisionOf(*dir.Plan, "clusterID").(string)
	a.Requests, _ = decisionOf(*dir.Plan, "credentials.request").(bool)
	a.Topology, _ = decisionOf(*dir.Plan, "topology.enabled").(bool)
	k, err := w.connectCluster(kube)
	if err != nil {
		return migrate.Adoption{}, err
	}
	if k == nil && len(old) > 0 {
		return migrate.Adoption{}, usage("--old-namespace needs a cluster: name one with --kubeconfig or KUBECONFIG")
	}
	if k != nil {
		topologyKey, _ := decisionOf(*dir.Plan, "driver.topologyKey").(string)
		if a.Found, err = migrate.Find(ctx, k, b, topologyKey, old); err != nil {
			return migrate.Adoption{}, err
		}
	}
	return a, a.Names()
}

// adoptable is an error for a bundle that takes nothing over.
func adoptable(name string, p v1alpha1.Plan) error {
	switch {
	case p.Target == v1alpha1.HostedControlPlane:
		return usage("%s is for target %s, where nothing can be taken over: HyperShift sets the state of its built-in driver back", name, p.Target)
	case p.Target == v1alpha1.Standalone && decisionOf(p, "openshift.adopted") != true:
		return usage("%s runs beside OpenShift's built-in driver, under another name, so it takes nothing over; generate it with spec.openshift.coexistence: adopt", name)
	}
	return nil
}

// decisionOf is the value of a decision, nil if the plan has none of that ID.
func decisionOf(p v1alpha1.Plan, id string) any {
	d, _ := plan.DecisionOf(p, id)
	return d.Value
}

// printParts writes steps as people follow them: numbered text, and commands indented below it.
func printParts(out io.Writer, parts []migrate.Part) error {
	var b strings.Builder
	for i, part := range parts {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("\n", min(i, 1)), part.Title)
		for n, step := range part.Steps {
			fmt.Fprintf(&b, "\n%d. %s\n", n+1, printable.Line(step.Text))
			for _, command := range step.Commands {
				fmt.Fprintf(&b, "       %s\n", strings.ReplaceAll(command, "\n", "\n       "))
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
