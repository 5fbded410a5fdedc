package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Adoption is a bundle that shall take over from a driver of the same name.
type Adoption struct {
	Dir       string // of the bundle, as the commands shall name it
	Helm      bool   // the bundle is for Helm, else for Kustomize
	Requests  bool   // OpenShift makes the Secret with the credentials
	OpenShift bool   // the old driver is the built-in one of a stand-alone OpenShift
	ClusterID string // that the bundle marks volumes with
	Topology  bool   // the bundle uses zones
	Bundle    cluster.Bundle
	Found     *Found // nil: no cluster was read
}

// Part is one part of the way.
type Part struct {
	Title string
	Steps []Step
}

// Step is one thing to do. Its commands are for a shell, in order.
type Step struct {
	Text     string
	Commands []string
}

// The objects of upstream's plain manifests.
var (
	upstreamController = cluster.Workload{Kind: "Deployment", Namespace: "kube-system", Name: "csi-cinder-controllerplugin"}
	upstreamNode       = cluster.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: "csi-cinder-nodeplugin"}
)

const byHand = " These are the names of the plain manifests since 1.23; a chart uses RELEASE-controllerplugin and RELEASE-nodeplugin. Up to 1.22 the controller is a " +
	"StatefulSet: name it with statefulset instead of deployment. With --kubeconfig, adopt finds what runs."

// Parts is the whole way to the bundle and back (docs/how-to/replace-upstream.md, docs/how-to/openshift.md).
func (a Adoption) Parts() []Part {
	if a.OpenShift {
		return a.openShiftParts()
	}
	return []Part{
		{"Check first", a.checks()},
		{"Before anything stops", a.before()},
		{"The swap", a.swap()},
		{"The way back", a.back()},
		{"What stays", a.stays()},
	}
}

// controllers and nodes are the workloads to replace: those that were found, else those of the plain manifests.
func (a Adoption) controllers() []cluster.Workload { return a.replaced(false, upstreamController) }
func (a Adoption) nodes() []cluster.Workload       { return a.replaced(true, upstreamNode) }

func (a Adoption) replaced(onNodes bool, otherwise cluster.Workload) []cluster.Workload {
	if a.Found == nil {
		return []cluster.Workload{otherwise}
	}
	var all []cluster.Workload
	for _, w := range a.Found.Workloads {
		if w.OnNodes() == onNodes {
			all = append(all, w)
		}
	}
	return all
}

// clean is what an object must lose before it can be created again.
const clean = `clean='del(.status, .metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp, .metadata.managedFields)'`

func (a Adoption) before() []Step {
	save := Step{Text: "Save the present objects, for the way back.", Commands: []string{clean}}
	if a.Found == nil {
		save.Text += byHand
	}
	for i, w := range a.controllers() {
		save.Commands = append(save.Commands, saved(w, file("upstream-controller", i)))
	}
	for i, w := range a.nodes() {
		save.Commands = append(save.Commands, saved(w, file("upstream-node", i)))
	}
	save.Commands = append(save.Commands, shell.Line("kubectl", "get", "csidriver", a.Bundle.DriverName, "-o", "json")+` | jq "$clean" > upstream-csidriver.json`)
	steps := []Step{save, {Text: "Create the namespace and the credentials Secret; the commands are in " + a.Dir + "/README.md."}}
	if !a.Helm {
		steps = append(steps, Step{
			Text:     "Let the API server check the rest. It may refuse only the CSIDriver, which the swap replaces.",
			Commands: []string{shell.Line("kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", a.Dir)},
		})
	}
	return append(steps, a.stopInstallers())
}

// stopInstallers is about what would create the old driver again.
func (a Adoption) stopInstallers() Step {
	s := Step{Text: "Stop what would create the old driver again: suspend the sync of the Argo CD application or of the Flux HelmRelease. " +
		"Never run helm uninstall: it also deletes classes and the CSIDriver. Delete only the record of the release."}
	if a.Found == nil {
		s.Commands = []string{"kubectl --namespace kube-system delete secret -l owner=helm,name=RELEASE"}
	}
	for _, w := range slices.Concat(a.controllers(), a.nodes()) {
		if w.Owner != "" {
			s.Text += fmt.Sprintf(" %s makes %s again: stop what maintains it first.", w.Owner, w)
		}
	}
	for _, w := range a.controllers() {
		if w.Release != "" {
			s.Commands = append(s.Commands, shell.Line("kubectl", "--namespace", w.Namespace, "delete", "secret", "-l", "owner=helm,name="+shell.Name(w.Release, "RELEASE")))
		}
	}
	return s
}

func saved(w cluster.Workload, name string) string {
	return shell.Line("kubectl", "--namespace", w.Namespace, "get", strings.ToLower(w.Kind), w.Name, "-o", "json") + ` | jq "$clean" > ` + name
}

// Names is an error if something in the bundle or in the cluster has a name that Kubernetes does not allow. The commands would delete it.
func (a Adoption) Names() error {
	if !shell.IsName(a.Bundle.DriverName) {
		return fmt.Errorf("the bundle has a CSIDriver with the name %q, which Kubernetes does not allow", a.Bundle.DriverName)
	}
	for _, w := range a.Bundle.Workloads {
		if !wellNamed(w) {
			return fmt.Errorf("the bundle has %s %q in namespace %q, names that Kubernetes does not allow", w.Kind, w.Name, w.Namespace)
		}
	}
	if a.Found == nil {
		return nil
	}
	for _, w := range a.Found.Workloads {
		if !wellNamed(w) {
			return fmt.Errorf("the cluster has %s %q in namespace %q, names that Kubernetes does not allow", w.Kind, w.Name, w.Namespace)
		}
		if w.Release != "" && !shell.IsLabel(w.Release) {
			return fmt.Errorf("%s has the annotation meta.helm.sh/release-name %q, which is no name of a release; correct it, or name another namespace with --old-namespace", w, w.Release)
		}
	}
	return nil
}

func wellNamed(w cluster.Workload) bool { return shell.IsLabel(w.Namespace) && shell.IsName(w.Name) }

// file is where an object is saved; a driver may have several node workloads.
func file(name string, i int) string {
	if i == 0 {
		return name + ".json"
	}
	return fmt.Sprintf("%s-%d.json", name, i+1)
}

// remove ends a workload. kubectl returns when its pods are gone: two drivers of one name would take the sockets from each other on the nodes.
func remove(w cluster.Workload) string {
	return shell.Line("kubectl", "--namespace", w.Namespace, "delete", strings.ToLower(w.Kind), w.Name, "--cascade=foreground")
}

func (a Adoption) removeDriver() string {
	return shell.Line("kubectl", "delete", "csidriver", a.Bundle.DriverName)
}

func (a Adoption) swap() []Step {
	stop := Step{Text: "Delete the old workloads. When no pod of them is left, delete the CSIDriver. Running pods keep their volumes. " +
		"Do not delete the classes, or anything that describes volumes."}
	var look []string
	for _, w := range slices.Concat(a.controllers(), a.nodes()) {
		stop.Commands = append(stop.Commands, remove(w))
		look = appendNew(look, shell.Line("kubectl", "--namespace", w.Namespace, "get", "pods"))
	}
	stop.Commands = slices.Concat(stop.Commands, look, []string{a.removeDriver()})
	return []Step{stop, a.apply(), a.check()}
}

func (a Adoption) apply() Step {
	if a.Helm {
		return Step{
			Text:     "Apply the bundle at once. Some of the objects exist already, so Helm takes them over.",
			Commands: []string{shell.Line("helm", "upgrade", "--install", "cinder-csi", "charts/cinder-csi", "--namespace", a.namespace("Deployment"), "-f", a.Dir+"/values.yaml", "--take-ownership")},
		}
	}
	return Step{Text: "Apply the bundle at once.", Commands: []string{shell.Line("kubectl", "apply", "--server-side", "--force-conflicts", "-k", a.Dir)}}
}

func (a Adoption) check() Step {
	return Step{Text: "Check that every node is registered again and that a claim binds.", Commands: []string{
		shell.Line("kubectl", "--namespace", a.namespace("Deployment"), "get", "pods"),
		"kubectl get csinode -o custom-columns=NODE:.metadata.name,DRIVERS:.spec.drivers[*].name",
	}}
}

func (a Adoption) namespace(kind string) string {
	for _, w := range a.Bundle.Workloads {
		if w.Kind == kind {
			return w.Namespace
		}
	}
	return "cinder-csi"
}

func (a Adoption) back() []Step {
	s := Step{Text: "Delete the two workloads of the bundle and its CSIDriver, and create what was saved. The first two commands return when the pods are gone. Never use kubectl delete -k: it also deletes the classes and the namespace."}
	for _, w := range a.Bundle.Workloads {
		s.Commands = append(s.Commands, remove(w))
	}
	create := "kubectl create -f upstream-csidriver.json"
	for i := range a.controllers() {
		create += " -f " + file("upstream-controller", i)
	}
	for i := range a.nodes() {
		create += " -f " + file("upstream-node", i)
	}
	s.Commands = append(s.Commands, a.removeDriver(), create)
	return []Step{s}
}

func (a Adoption) stays() []Step {
	return []Step{
		{Text: "Volumes, snapshots, claims, PersistentVolumes and VolumeAttachments stay; both drivers use the same handles and the same labels of nodes."},
		{Text: "The old classes stay and work with the new driver. The classes of the bundle are added."},
		{Text: "The old Services, ServiceAccounts, rights and the Secret with cloud.conf stay, for the way back. Delete them when you need it no more."},
	}
}
