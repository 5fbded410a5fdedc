// Package command is the command that says where one volume hangs: `cinder-csi-generator doctor volume`, and `kubectl cinder volume` of the
// kubectl plugin. It is a package of its own so that the plugin does not link the generator.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// ErrUsage is a command line that cannot work.
var ErrUsage = errors.New("wrong usage")

// ErrHangs is a volume that hangs: the report says why.
var ErrHangs = errors.New("the volume hangs")

// World is everything outside of the command.
type World struct {
	Stdout, Stderr io.Writer
	Columns        int // the width of Stdout as a terminal; 0 if it is none
	Env            func(string) string
	Version        string
	Connect        func(context.Context, cloud.Settings, cloud.Options) (*cloud.Cloud, error)
	Kubernetes     func(cluster.Source) (*cluster.Cluster, error)
	Now            func() time.Time
}

// The forms of the output.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

var outputs = []string{asTable, asJSON, asYAML}

// width is that of the report if Stdout is no terminal: it may be shown in one of the usual width.
const width = 80

// command is the flags.
type command struct {
	World
	kube       cluster.Source
	controller cluster.Source // of the cluster with the controller; empty: the same
	cloud      cloud.Source
	objects    string // namespace of the claim; empty: that of the context
	namespace  string // of the driver
	output     string
	timeout    *time.Duration
}

// New is the command. The timeout belongs to the caller, who binds its flag.
func New(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	c := &cobra.Command{
		Use:   "volume NAMESPACE/CLAIM|TYPE/NAME|ID",
		Short: "Say where the volume of a claim hangs, and what to do",
		Long: `Follows one claim from its StorageClass to the disk in the pod. It reads claim, class, PersistentVolume, VolumeAttachment, pods, nodes, the
driver and its operations in progress. It asks Cinder about the volume, and Nova about the server. Says which step waits, since when, why, and what to do.

A volume can also be named by an object: pod/NAME, pv/NAME, volumeattachment/NAME, volumesnapshot/NAME, or the ID of the volume in Cinder. A
pod may have several volumes; each has its report.

It changes nothing. It needs no credentials of the cloud (--os-cloud or OS_*) and no right to forward a port to the driver. Without
them it lists what it could not see. With a hosted control plane the controller runs in another cluster: name that with
--controller-kubeconfig, and the namespace there with --driver-namespace. Exit code 0: nothing hangs. 1: a step waits or has failed, or the
server of a node is not known. 64: wrong usage.`,
		Example: `  kubectl cinder volume data-db-0 -n shop --os-cloud mycloud
  kubectl cinder volume pod/db-0 -n shop
  kubectl cinder volume 9f445367-ee0c-4f56-93e5-9bdef423e884 -o yaml`,
		Args:              cobra.RangeArgs(1, 2),
		RunE:              func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), args) },
		ValidArgsFunction: v.completeTargets,
	}
	v.flags(c)
	v.controllerFlags(c)
	c.Flags().StringVarP(&v.objects, "namespace", "n", "", "namespace of the claim; default that of the context")
	_ = c.RegisterFlagCompletionFunc("namespace", v.completeNamespaces)
	return c
}

func (v *command) controllerFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&v.controller.Kubeconfig, "controller-kubeconfig", "", "with a hosted control plane: kubeconfig of the cluster in which the controller runs; needs --driver-namespace")
	f.StringVar(&v.namespace, "driver-namespace", "", "namespace of the controller; default: look for its pods in all namespaces")
}

// controllerOf connects the cluster of --controller-kubeconfig, if it is named.
func (v *command) controllerOf(from *diagnosis.Clients) error {
	if v.controller.Kubeconfig == "" {
		return nil
	}
	if v.namespace == "" {
		return fmt.Errorf("%w: --controller-kubeconfig needs --driver-namespace: that cluster may have controllers of other clusters", ErrUsage)
	}
	var err error
	if from.Controller, err = v.Kubernetes(v.controller); err != nil {
		return fmt.Errorf("%w: --controller-kubeconfig: %w", ErrUsage, err)
	}
	from.Page = from.Controller.PodPage
	return nil
}

func (v *command) flags(c *cobra.Command) {
	v.clusterFlags(c)
	f := c.Flags()
	f.StringVar(&v.cloud.CloudName, "os-cloud", "", "the cloud's entry in clouds.yaml; default OS_CLOUD, or the OS_* variables")
	f.StringVar(&v.cloud.Region, "os-region-name", "", "region; default OS_REGION_NAME, or what clouds.yaml says")
	f.StringVar(&v.cloud.CACert, "os-cacert", "", "PEM file of the cloud's CA; default OS_CACERT, or what clouds.yaml says")
	_ = c.RegisterFlagCompletionFunc("os-cloud", CompleteClouds(v.Env))
}

func (v *command) clusterFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&v.kube.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default KUBECONFIG, then ~/.kube/config")
	f.StringVar(&v.kube.Context, "context", "", "context in the kubeconfig; default its current one")
	f.StringVar(&v.kube.User, "user", "", "user in the kubeconfig; default that of the context")
	f.StringVar(&v.kube.As, "as", "", "user to act as")
	f.StringVarP(&v.output, "output", "o", asTable, "table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("context", v.completeContexts)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteClouds offers the entries of clouds.yaml for a flag that names a cloud, and nothing if the file cannot be read.
func CompleteClouds(env func(string) string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := cloud.Names(cloud.Source{Env: env})
		return shell.Candidates(names), cobra.ShellCompDirectiveNoFileComp
	}
}

func (v *command) run(ctx context.Context, args []string) error {
	k, err := v.cluster()
	if err != nil {
		return err
	}
	target, err := parse(cmp.Or(v.objects, k.Namespace()), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from, err := v.clients(k)
	if err != nil {
		return err
	}
	volumes, err := diagnosis.Find(ctx, k, target, v.given())
	if err != nil {
		return err
	}
	from.Cloud, from.NoCloud = v.connect(ctx)
	defer from.Cloud.Close()
	var reports []diagnosis.Report
	var causes []string
	blind := ""
	for _, volume := range volumes {
		readings, err := diagnosis.ReadSubject(ctx, from, volume)
		if err != nil {
			return err
		}
		r := diagnosis.Diagnose(readings)
		v.given().Complete(&r)
		reports = append(reports, r)
		blind = cmp.Or(blind, diagnosis.Blind(r.Unseen))
		if r.Hangs() {
			causes = append(causes, r.Cause)
		}
	}
	if err := v.print(reports); err != nil {
		return err
	}
	if len(causes) > 0 {
		return fmt.Errorf("%w: %s", ErrHangs, strings.Join(causes, ", "))
	}
	if blind != "" {
		return fmt.Errorf("%w: %s", ErrUnread, blind)
	}
	return nil
}

// cluster is the cluster with the volumes. It also checks the flags that every command has.
func (v *command) cluster() (*cluster.Cluster, error) {
	if !slices.Contains(outputs, v.output) {
		return nil, fmt.Errorf("%w: --output %q: want %s", ErrUsage, v.output, strings.Join(outputs, ", "))
	}
	k, err := v.Kubernetes(v.kube)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; name a cluster with --kubeconfig or KUBECONFIG", ErrUsage, err)
	}
	return k, nil
}

// given are the flags for the commands of a report. With a hosted control plane its kubectl commands are for two clusters.
func (v *command) given() diagnosis.Given {
	flags := func(pairs ...string) (set []string) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] != "" {
				set = append(set, pairs[i], pairs[i+1])
			}
		}
		return set
	}
	cloud := flags("--os-cloud", cmp.Or(v.cloud.CloudName, v.Env("OS_CLOUD")), "--os-region-name", v.cloud.Region, "--os-cacert", v.cloud.CACert)
	cluster := flags("--kubeconfig", v.kube.Kubeconfig, "--context", v.kube.Context)
	g := diagnosis.Given{"openstack": cloud, "cinder-csi-generator": cloud}
	g["kubectl cinder"] = slices.Concat(cluster, flags("--controller-kubeconfig", v.controller.Kubeconfig, "--driver-namespace", v.namespace), cloud)
	if v.controller.Kubeconfig == "" {
		g["kubectl"] = cluster
	}
	return g
}

var errNoCredentials = errors.New("no credentials are given")

// login logs in to the cloud. Errors: errNoCredentials, and those of cloud.
func (v *command) login(ctx context.Context) (*cloud.Cloud, error) {
	if v.cloud.CloudName == "" && v.Env("OS_CLOUD") == "" && v.Env("OS_AUTH_URL") == "" {
		return nil, errNoCredentials
	}
	source := v.cloud
	source.Env = v.Env
	settings, err := cloud.FromSource(source)
	if err != nil {
		return nil, err
	}
	return v.Connect(ctx, settings, cloud.Options{UserAgent: []string{"cinder-csi-generator/" + v.Version}, Wrap: cloud.Bound})
}

// connect is login for a diagnosis that goes on without it, with a gap.
func (v *command) connect(ctx context.Context) (*cloud.Cloud, diagnosis.Gap) {
	c, err := v.login(ctx)
	if err == nil {
		return c, diagnosis.Gap{}
	}
	return nil, diagnosis.Gap{What: "the volume in Cinder and the server in Nova", Why: err.Error(), Do: loginAdvice(err)}
}

func loginAdvice(err error) string {
	if errors.Is(err, errNoCredentials) {
		return "name a cloud of clouds.yaml with --os-cloud; it must be the project of the driver"
	}
	return "correct the credentials given to this command; those of the driver may be others"
}

func (v *command) print(reports []diagnosis.Report) error {
	switch {
	case v.output != asTable && len(reports) == 1:
		return v.document(reports[0])
	case v.output != asTable:
		return v.document(map[string]any{"items": reports})
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(v.Stdout)
		}
		if err := diagnosis.Print(v.Stdout, r, v.columns()); err != nil {
			return err
		}
	}
	return nil
}

func (v *command) columns() int {
	return cmp.Or(v.Columns, width)
}

// show writes a value for people or for scripts.
func show[T any](v *command, value T, table func(out io.Writer, value T, columns int) error) error {
	if v.output == asTable {
		return table(v.Stdout, value, v.columns())
	}
	return v.document(value)
}

// document writes a value for scripts.
func (v *command) document(value any) error {
	if v.output == asYAML {
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = v.Stdout.Write(text)
		}
		return err
	}
	encoder := json.NewEncoder(v.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func (v *command) now() time.Time {
	if v.Now == nil {
		return time.Now().UTC()
	}
	return v.Now()
}
