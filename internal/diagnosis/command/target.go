package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// parse reads what somebody names, in the forms of kubectl: NAME, TYPE NAME, TYPE/NAME; also NAMESPACE/CLAIM, and the ID of a Cinder volume.
func parse(namespace string, args []string) (diagnosis.Subject, error) {
	t := diagnosis.Subject{Kind: diagnosis.Claim, Namespace: namespace, Name: args[0]}
	first, second, slash := strings.Cut(args[0], "/")
	kind, isKind := diagnosis.KindOf(first)
	switch {
	case len(args) == 2:
		if kind, isKind = diagnosis.KindOf(args[0]); !isKind {
			return t, fmt.Errorf("%w: %q is no type; want pvc, pod, pv, volumeattachment, volumesnapshot or cinder", ErrUsage, args[0])
		}
		t.Kind, t.Name = kind, args[1]
	case slash && isKind:
		t.Kind, t.Name = kind, second
	case slash:
		t.Namespace, t.Name = first, second
	case shell.IsID(args[0]):
		t.Kind = diagnosis.Cinder
	}
	valid := shell.IsName(t.Name)
	if t.Kind == diagnosis.Cinder {
		valid = shell.IsID(t.Name)
	}
	if !valid || !shell.IsLabel(t.Namespace) {
		return t, fmt.Errorf("%w: %q names no volume. Want NAME or NAMESPACE/NAME of a claim, or the ID of a Cinder volume. Else TYPE/NAME with pvc, pod, pv, volumeattachment or volumesnapshot",
			ErrUsage, strings.Join(args, " "))
	}
	return t, nil
}

// completionTime is how long the shell waits for names of the cluster.
const completionTime = 3 * time.Second

// completed lists names of a cluster for the shell; none if it does not answer.
func (v *command) completed(ctx context.Context, path, prefix string) []string {
	k, err := v.Kubernetes(v.kube)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, completionTime, errors.New("no answer in time for the shell"))
	defer cancel()
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/" + cmp.Or(v.objects, k.Namespace()) + "/" + path
	}
	objects, err := cluster.List[struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}](ctx, k, path)
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, prefix+o.Metadata.Name)
	}
	slices.Sort(names)
	return shell.Candidates(names)
}

// completeTargets offers claims of the namespace, and objects of a type behind TYPE/ or TYPE.
func (v *command) completeTargets(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	typeName, _, slash := strings.Cut(typed, "/")
	prefix := ""
	switch {
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1:
		typeName = args[0]
	case slash:
		prefix = typeName + "/"
	default:
		typeName = "pvc"
	}
	kind, isKind := diagnosis.KindOf(typeName)
	path := ""
	switch {
	case !isKind && slash && shell.IsLabel(typeName):
		path = "/api/v1/namespaces/" + typeName + "/persistentvolumeclaims"
	case isKind:
		path = map[diagnosis.Kind]string{
			diagnosis.Claim: "persistentvolumeclaims", diagnosis.Pod: "pods", diagnosis.Volume: "/api/v1/persistentvolumes",
			diagnosis.Attachment: "/apis/storage.k8s.io/v1/volumeattachments",
		}[kind]
	}
	if path == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return v.completed(c.Context(), path, prefix), cobra.ShellCompDirectiveNoFileComp
}

func (v *command) completeNamespaces(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return v.completed(c.Context(), "/api/v1/namespaces", ""), cobra.ShellCompDirectiveNoFileComp
}

func (v *command) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, _ := cluster.Contexts(v.kube) // without a kubeconfig there are none
	return shell.Candidates(names), cobra.ShellCompDirectiveNoFileComp
}
