package bundle

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// readme is the bundle's README: for people, who read it instead of this program's documentation. What pods need and the bundle
// does not bring along is named in it in backquotes; verification looks for that.
func readme(r plan.Result, planes []*plane) []byte {
	w := &text{}
	w.line("# Cinder CSI driver `%s` for a %s cluster", r.Driver.Value, targetNames[r.Target])
	w.line("")
	if r.Simulated {
		w.line("**Made from a simulated cloud. There is no such cloud: this bundle is to be looked at, not to be used.**")
		w.line("")
	}
	w.line("Written by `cinder-csi-generator` for region `%s` of `%s`, project `%s`. This directory is the generator's: edits are lost,", r.Cloud.Region, r.Cloud.AuthURL, r.Cloud.ProjectID)
	w.line("run it again instead. `plan.yaml` holds the decisions for programs. In the commands, `$DIR` is this directory.")
	w.warnings(r)
	w.decisions(r)
	w.prerequisites(r, planes)
	w.credentials(r)
	w.driftCheck(r)
	w.apply(r, planes)
	w.changes(r)
	w.remove(r, planes)
	return w.Bytes()
}

// warnings come first: without an image of the driver, the first apply fails.
func (w *text) warnings(r plan.Result) {
	if len(r.Warnings) == 0 {
		return
	}
	w.line("\n## Read this first\n")
	for _, warning := range r.Warnings {
		w.line("- %s", sentence(warning))
	}
}

var targetNames = map[v1alpha1.Target]string{
	v1alpha1.Vanilla: "Kubernetes", v1alpha1.Standalone: "stand-alone OpenShift", v1alpha1.HostedControlPlane: "HyperShift",
}

type text struct{ bytes.Buffer }

// verb is a place for a value in a format, with the backquotes around it.
var verb = regexp.MustCompile("`?%[a-z]`?")

// line writes one line; what is put into it stays on it, and cannot steer the terminal of who reads the file. What stands between backquotes
// does not end them.
func (w *text) line(format string, args ...any) {
	for i, at := range verb.FindAllString(format, -1) {
		s, isText := args[i].(string)
		switch {
		case isText && strings.Count(at, "`") == 2:
			args[i] = printable.Code(s)
		case isText:
			args[i] = printable.Line(s)
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

func (w *text) decisions(r plan.Result) {
	w.line("\n## What was decided, and why\n")
	decided := func(what, value, reason string) {
		w.line("- %s: **%s**. %s", what, printable.Markdown(value), sentence(reason))
	}
	decided("Driver name", r.Driver.Value, r.Driver.Reason)
	decided("Namespace of the controller", r.ControllerNamespace.Value, r.ControllerNamespace.Reason)
	decided("Namespace of the nodes", r.NodeNamespace.Value, r.NodeNamespace.Reason)
	decided("Cluster ID in Cinder", r.ClusterID.Value, r.ClusterID.Reason)
	decided("Topology", onOff(r.Topology.Value), r.Topology.Reason)
	defaultClass := r.DefaultClass.Value
	if defaultClass == "" {
		defaultClass = "none"
	}
	decided("Default StorageClass", defaultClass, r.DefaultClass.Reason)
	decided("Snapshots", onOff(r.SnapshotClass.Value.Enabled), r.SnapshotClass.Reason)
	limit := r.AttachLimit.Value
	if limit == v1alpha1.Auto {
		limit = "the node's own"
	}
	decided("Volumes per node", limit, r.AttachLimit.Reason)
	decided("Image of the driver", r.Image(r.Controller, "driver").Value, r.Image(r.Controller, "driver").Reason)
	decided("Controller pods", fmt.Sprintf("%d replicas", r.Controller.Replicas.Value), r.Controller.Replicas.Reason)
	decided("Network policy", onOff(r.NetworkPolicy.Value.Enabled), r.NetworkPolicy.Reason)
	w.classes(r)
}

// manyClasses is where a table of classes is no longer something a person reads.
const manyClasses = 50

func (w *text) classes(r plan.Result) {
	switch n := len(r.StorageClasses); n {
	case 0:
		w.line("\nNo StorageClass is made.")
		return
	case 1:
		w.line("\n1 StorageClass:\n")
	default:
		w.line("\n%d StorageClasses:\n", n)
	}
	if len(r.StorageClasses) > manyClasses {
		w.line("more than fit here; `plan.yaml` lists each with its reason.")
		return
	}
	w.line("| class | volume type | zones | default |")
	w.line("| --- | --- | --- | --- |")
	for _, d := range r.StorageClasses {
		c := d.Value
		zones, isDefault := "all", ""
		if len(c.AllowedZones) > 0 {
			zones = strings.Join(c.AllowedZones, ", ")
		}
		if c.Default {
			isDefault = "yes"
		}
		w.line("| %s | %s | %s | %s |", printable.Markdown(c.Name), printable.Markdown(c.VolumeType.Name), printable.Markdown(zones), isDefault)
	}
}

func (w *text) prerequisites(r plan.Result, planes []*plane) {
	w.line("\n## What must be there\n")
	w.line("- The Secret `%s` in namespace `%s`, with the cloud's credentials: see below.", r.Credentials.Value.SecretName, r.ControllerNamespace.Value)
	w.openShiftPrerequisites(r)
	if r.SnapshotClass.Value.Enabled {
		w.line("- The snapshot CRDs (`snapshot.storage.k8s.io/v1`) and snapshot-controller, of external-snapshotter, in the cluster whose claims are served; or set `spec.snapshots.enabled: false`.")
	}
	if r.BackupClass.Value.Enabled && r.BackupClass.Source == plan.Inferred {
		w.line("- The service cinder-backup in the cloud, for VolumeSnapshots of class `%s`. A member of a project cannot see whether it runs; without it they fail. "+
			"Then set `spec.snapshots.backup: disabled`.", r.BackupClass.Value.Name)
	}
	if r.Monitoring.Value != v1alpha1.None {
		w.line("- The CRDs of the Prometheus operator (`monitoring.coreos.com/v1`), wherever a part of this bundle is applied. Nodes serve metrics on port %d of the host: your firewall decides who reads them.", metricsPort(r))
	}
	if ca := r.CASource.Value; ca.ConfigMap != "" && r.CABundle.Value == "" && !r.TrustedCA.Value {
		w.line("- The ConfigMap `%s` in namespace `%s`, with the CA certificates of OpenStack's endpoints under the key `%s`.", ca.ConfigMap, r.ControllerNamespace.Value, ca.Key)
	}
	if r.TrustedCA.Value {
		w.line("- OpenShift's network operator in the cluster of namespace `%s`: it fills the ConfigMap `%s`, and the controller's pods wait for it.", r.ControllerNamespace.Value, r.CASource.Value.ConfigMap)
	}
	if r.Target == v1alpha1.HostedControlPlane {
		w.line("- The hosted control plane's namespace `%s`, with HyperShift's Secret `%s`.", r.ControllerNamespace.Value, r.KubeconfigSecret.Value)
		if r.GuestAccess.Value == v1alpha1.ServiceAccountToken {
			w.line("- Kubernetes 1.29 (OpenShift 4.16) or newer in the management cluster; on an older one set `spec.hypershift.guestAccess: %s`.", v1alpha1.AdminKubeconfig)
		}
	}
	var told []string
	for _, p := range planes {
		for _, pods := range []struct {
			here      bool
			namespace string
			secrets   []string
		}{{p.controller, p.controllerNS.Value, r.Controller.ImagePullSecrets.Value}, {p.node, p.nodeNS.Value, r.Node.ImagePullSecrets.Value}} {
			if !pods.here {
				continue
			}
			for _, s := range pods.secrets {
				w.line("- The pull secret `%s` in namespace `%s`.", s, pods.namespace)
			}
			if brought(pods.namespace) && !slices.Contains(told, pods.namespace) {
				told = append(told, pods.namespace)
				w.line("- Namespace `%s`, which is not this bundle's to make: its pod security must allow the pods.", pods.namespace)
			}
		}
	}
	w.line("- No other driver named `%s` in the cluster: two drivers never share a name.", r.Driver.Value)
	if r.Target == v1alpha1.Vanilla && r.Driver.Value == contract.DriverName {
		w.line("  Upstream's plugin has it: %s says what to look at first, how to swap and how to go back.", docs(r, "how to replace it", pages.ReplaceUpstream))
	}
	w.takeOver(r)
}

func (w *text) apply(r plan.Result, planes []*plane) {
	w.line("\n## Apply, and look at what would change\n")
	if len(planes) > 1 {
		w.line("The guest's part first: the controller's sidecars need the rights it holds.\n")
		planes = slices.Clone(planes)
		slices.Reverse(planes)
	}
	if r.Format == v1alpha1.Helm {
		w.line("`$CHART` is the chart of version `%s`, in a checkout of cinder-csi: set it to your path.\n", r.Generator)
	}
	w.line("```sh")
	w.here()
	if r.Format == v1alpha1.Helm {
		w.line("CHART=%s", chartPlace)
	}
	for _, p := range planes {
		dir := p.place()
		if len(planes) > 1 {
			w.line("# %s", planeNames[p.name])
		}
		// First: kubectl diff asks the API server about each object, and that refuses an object of a namespace that is not there.
		if len(p.namespaces()) > 0 {
			w.line("kubectl apply -f %s/namespace.yaml", dir)
		}
		if r.Format == v1alpha1.Kustomize {
			w.line("kubectl diff -k %s", dir)
			w.line("kubectl apply --server-side -k %s", dir)
			continue
		}
		w.line("helm template $CHART --skip-tests -f %s/values.yaml | kubectl diff -f -", dir)
		w.line("helm upgrade --install cinder-csi $CHART --namespace %s -f %s/values.yaml", shell.Word(p.releaseNS()), dir)
	}
	w.line("```\n")
	w.line("`cinder-csi-generator validate $DIR` checks every object without a cluster. In a pipeline, this tells (exit code 2) when the cloud no longer")
	w.line("gives these files; with `--config`, also when the configuration no longer does:\n")
	if r.Simulated {
		w.line("    cinder-csi-generator generate --check --output-dir $DIR --simulated")
		return
	}
	w.line("    cinder-csi-generator generate --check --output-dir $DIR --os-cloud mycloud\n")
	w.line("`mycloud` is an entry for this project in the `clouds.yaml` of the pipeline or your own, not the driver's. A credential that only reads is enough.")
}

// docs names a page of the documentation. It is a link if the configuration says where a copy of the repository is.
func docs(r plan.Result, text string, page pages.Page) string {
	if base := r.RunbookBase.Value; base != "" {
		return "[" + text + "](" + page.Below(base) + ")"
	}
	return text + " (" + page.Title() + " of cinder-csi)"
}

// chartPlace is a path that exists nowhere: the reader must set it, because the chart is not in the directory of the bundle.
const chartPlace = "/path/to/checkout/charts/cinder-csi"

// here begins a block of commands that can be pasted in the directory of the bundle.
func (w *text) here() { w.line("DIR=.") }

// place is the directory of a plane in a command.
func (p *plane) place() string { return strings.TrimSuffix("$DIR/"+p.dir, "/") }

var planeNames = map[string]string{planeManagement: "in the management cluster", planeGuest: "in the guest cluster"}

func (p *plane) releaseNS() string {
	if p.controller {
		return p.controllerNS.Value
	}
	return p.nodeNS.Value
}

func (w *text) changes(r plan.Result) {
	w.line("\n## Changes of your own\n")
	if r.Format == v1alpha1.Helm {
		w.line("In a values file outside of this directory: `helm ... -f $DIR/values.yaml -f mine.yaml`.")
		return
	}
	list, one := "tolerations/-", "{key: storage, operator: Exists, effect: NoSchedule}"
	if len(r.Controller.Tolerations.Value) == 0 { // then there is no list to add to
		list, one = "tolerations", "["+one+"]"
	}
	resource := "../cinder-csi"
	if r.Target == v1alpha1.HostedControlPlane {
		resource += "/" + planeManagement
	}
	w.line("What this bundle has of your cloud and your configuration: `values.yaml` has every value that is not the default of the chart, and `patches` has")
	w.line("what that changes in the objects of the base, which have the defaults of the target. The base is the first of `resources` in `kustomization.yaml`.")
	w.line("Each line and each operation names its decision, which `plan.yaml` explains. The other files have objects that the base does not have.\n")
	w.line("Your own changes go into a kustomization outside of this directory. This one lets the controller run on nodes with one more taint:\n")
	w.line("```yaml\nresources: [%s] # the path to this directory\npatches:", resource)
	w.line("- target: {kind: Deployment, name: cinder-csi-controller}")
	w.line("  patch: |-")
	w.line("    - {op: add, path: /spec/template/spec/%s, value: %s}\n```\n", list, one)
	w.line("The pods of the nodes tolerate every taint, unless `spec.roles.node.tolerations` is set.")
	w.line("Apply that kustomization in place of this directory from then on, and remove it as below, with its path. A merge patch would replace the list of tolerations.")
	w.line("`images`, `replicas` and `labels` work there too. `namePrefix`, `nameSuffix` and `namespace` do not: names of objects stand in settings and classes too.")
	w.line("Set `spec.namespaces` and `spec.driver.name` instead, and generate again.")
	w.line("If you patch a ConfigMap with settings, restart the pods that read it: `kubectl rollout restart`.")
}

// remove gives the commands that delete everything, in an order that leaves no volume without a driver. The controller's plane goes first:
// its sidecars need the rights of the other.
func (w *text) remove(r plan.Result, planes []*plane) {
	w.line("\n## Remove\n")
	w.line("Only the driver unmounts, detaches and deletes its volumes, so remove it last: first delete the pods, claims and snapshots of its")
	w.line("classes. A volume with the reclaim policy Retain stays in Cinder. Go on when this prints nothing:\n")
	w.line("```sh")
	if len(planes) > 1 {
		w.line("# %s", planeNames[planeGuest])
	}
	w.line("kubectl get persistentvolumes -o jsonpath=%s", namesOf(".spec.csi.driver", r.Driver.Value))
	w.line("kubectl get volumeattachments -o jsonpath=%s", namesOf(".spec.attacher", r.Driver.Value))
	if r.SnapshotClass.Value.Enabled {
		w.line("kubectl get volumesnapshotcontents -o jsonpath=%s", namesOf(".spec.driver", r.Driver.Value))
	}
	w.line("```\n")
	if r.Format == v1alpha1.Helm {
		w.line("Helm keeps the classes, the CSIDriver and the namespaces: the commands after it delete them.\n")
	} else {
		w.line("Then delete what was applied:\n")
	}
	w.line("```sh")
	w.here()
	for _, p := range planes {
		if len(planes) > 1 {
			w.line("# %s", planeNames[p.name])
		}
		w.removePlane(r, p)
	}
	w.line("```")
}

// namesOf is a word of a shell command: the names of the objects in which a field is the name of the driver.
func namesOf(field, driver string) string {
	return shell.Word(fmt.Sprintf(`{range .items[?(@%s==%q)]}{.metadata.name}{"\n"}{end}`, field, driver))
}

func (w *text) removePlane(r plan.Result, p *plane) {
	dir := p.place()
	if p.controller && r.Credentials.Value.Owner == "" {
		w.line("kubectl delete secret %s --namespace %s", shell.Word(r.Credentials.Value.SecretName), shell.Word(p.controllerNS.Value))
	}
	if p.checksDrift() {
		w.line("kubectl delete secret %s --namespace %s", driftCheckName, shell.Word(p.controllerNS.Value))
	}
	if r.Format == v1alpha1.Kustomize {
		w.line("kubectl delete -k %s --ignore-not-found", dir) // the token of a ServiceAccount goes with it
		return
	}
	w.line("helm uninstall cinder-csi --namespace %s", shell.Word(p.releaseNS()))
	if p.cluster {
		for _, class := range r.StorageClasses {
			w.line("kubectl delete storageclass %s", shell.Word(class.Value.Name))
		}
		if p.snapshots() {
			w.line("kubectl delete volumesnapshotclass %s", shell.Word(r.SnapshotClass.Value.Name))
			if r.BackupClass.Value.Enabled {
				w.line("kubectl delete volumesnapshotclass %s", shell.Word(r.BackupClass.Value.Name))
			}
			for _, class := range r.SnapshotClasses {
				w.line("kubectl delete volumesnapshotclass %s", shell.Word(class.Value.Name))
			}
		}
		for _, class := range r.AttributesClasses {
			w.line("kubectl delete volumeattributesclass %s", shell.Word(class.Value.Name))
		}
		w.line("kubectl delete csidriver %s", shell.Word(r.Driver.Value))
	}
	if len(p.namespaces()) > 0 {
		w.line("kubectl delete -f %s/namespace.yaml", dir)
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// configKey is the name of a key of the configuration.
var configKey = regexp.MustCompile(`\b(spec|metadata)(\.\w+(\[\d+\])?)+`)

// inCode is a command that a reason has in backquotes, or the name of a key.
var inCode = regexp.MustCompile("`[^`]+`|" + configKey.String())

// sentence makes a reason one that reads well in Markdown: keys in code, a capital unless it begins with a key, a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	if at := configKey.FindStringIndex(s); at == nil || at[0] > 0 {
		first, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[size:]
	}
	s = strings.TrimSuffix(s, ".")
	var marked strings.Builder
	end := 0
	for _, at := range inCode.FindAllStringIndex(s, -1) {
		marked.WriteString(printable.Markdown(s[end:at[0]]))
		marked.WriteString("`" + strings.Trim(s[at[0]:at[1]], "`") + "`")
		end = at[1]
	}
	return marked.String() + printable.Markdown(s[end:]) + "."
}
