// Package command is the command that says where one volume hangs: `cinder-csi-generator doctor volume`, and `kubectl cinder volume` of the
// kubectl plugin. It is a package of its own so that the plugin does not link the generator.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
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

// width is that of the report if Stdout is no terminal.
const width = 100

// command is the flags.
type command struct {
	World
	kube      cluster.Source
	cloud     cloud.Source
	namespace string
	output    string
	timeout   *time.Duration
}

// New is the command. The timeout belongs to the caller, who binds its flag.
func New(w World, timeout *time.Duration) *cobra.Command {
	v := &command{World: w, timeout: timeout}
	c := &cobra.Command{
		Use:   "volume NAMESPACE/CLAIM",
		Short: "Say where the volume of a claim hangs, and what to do",
		Long: `Follows one claim from its StorageClass to the disk in the pod: claim, class, PersistentVolume, VolumeAttachment, pods, nodes, the
driver, its operations in progress, the volume in Cinder and the server in Nova. Says which step waits, since when, why, and what to do.

It changes nothing. It works without credentials of the cloud (--os-cloud or OS_*) and without the right to forward a port to the
driver: then it lists what it could not see. Exit code 0: nothing hangs. 1: a step waits or has failed. 64: wrong usage.`,
		Example: "  kubectl cinder volume shop/data-db-0 --os-cloud mycloud",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), args[0]) },
		// Without it the shell offers files, and a claim is none.
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&v.kube.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default KUBECONFIG, then ~/.kube/config")
	f.StringVar(&v.kube.Context, "context", "", "context in the kubeconfig; default its current one")
	f.StringVar(&v.cloud.CloudName, "os-cloud", "", "the cloud's entry in clouds.yaml; default OS_CLOUD, or the OS_* variables")
	f.StringVar(&v.cloud.Region, "os-region-name", "", "region; default OS_REGION_NAME, or what clouds.yaml says")
	f.StringVar(&v.cloud.CACert, "os-cacert", "", "PEM file of the cloud's CA; default OS_CACERT, or what clouds.yaml says")
	f.StringVar(&v.namespace, "driver-namespace", "", "namespace of the driver; default: look for its pods in all namespaces")
	f.StringVarP(&v.output, "output", "o", "table", "table or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("os-cloud", CompleteClouds(w.Env))
	return c
}

// CompleteClouds offers the entries of clouds.yaml for a flag that names a cloud, and nothing if the file cannot be read.
func CompleteClouds(env func(string) string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, err := cloud.Names(cloud.Source{Env: env})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (v *command) run(ctx context.Context, argument string) error {
	namespace, name, found := strings.Cut(argument, "/")
	switch {
	case !found || namespace == "" || name == "" || strings.Contains(name, "/"):
		return fmt.Errorf("%w: %q is not NAMESPACE/CLAIM, such as shop/data-db-0", ErrUsage, argument)
	case v.output != "table" && v.output != "json":
		return fmt.Errorf("%w: --output %q: want table or json", ErrUsage, v.output)
	}
	k, err := v.Kubernetes(v.kube)
	if err != nil {
		return fmt.Errorf("%w: %w; name a cluster with --kubeconfig or KUBECONFIG", ErrUsage, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *v.timeout, fmt.Errorf("no complete answer within %s (--timeout)", *v.timeout))
	defer cancel()
	from := diagnosis.Sources{Cluster: k, Namespace: v.namespace, Page: k.PodPage, Now: v.now()}
	from.Cloud, from.NoCloud = v.connect(ctx)
	if from.Cloud != nil {
		defer from.Cloud.Close()
	}
	facts, err := diagnosis.Read(ctx, from, namespace, name)
	if err != nil {
		return err
	}
	r := diagnosis.Diagnose(facts)
	if err := v.print(r); err != nil {
		return err
	}
	if r.Hangs() {
		return fmt.Errorf("%w: %s", ErrHangs, r.Cause)
	}
	return nil
}

// connect logs in to the cloud. Without a login the story goes on, with a gap.
func (v *command) connect(ctx context.Context) (*cloud.Cloud, diagnosis.Gap) {
	const what = "the volume in Cinder and the server in Nova"
	if v.cloud.CloudName == "" && v.Env("OS_CLOUD") == "" && v.Env("OS_AUTH_URL") == "" {
		return nil, diagnosis.Gap{What: what, Why: "no credentials are given", Do: "name a cloud of clouds.yaml with --os-cloud; it must be the project of the driver"}
	}
	source := v.cloud
	source.Env = v.Env
	settings, err := cloud.FromSource(source)
	if err == nil {
		var c *cloud.Cloud
		if c, err = v.Connect(ctx, settings, cloud.Options{UserAgent: []string{"cinder-csi-generator/" + v.Version}, Wrap: cloud.Bound}); err == nil {
			return c, diagnosis.Gap{}
		}
	}
	return nil, diagnosis.Gap{What: what, Why: err.Error(), Do: "correct the credentials given to this command; those of the driver may be others"}
}

func (v *command) print(r diagnosis.Report) error {
	if v.output == "json" {
		encoder := json.NewEncoder(v.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	}
	columns := v.Columns
	if columns == 0 {
		columns = width
	}
	return diagnosis.Print(v.Stdout, r, columns)
}

func (v *command) now() time.Time {
	if v.Now == nil {
		return time.Now().UTC()
	}
	return v.Now()
}
