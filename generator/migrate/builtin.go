package migrate

import (
	"fmt"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// The workloads of OpenShift's built-in driver, and the classes that its operator makes.
const (
	builtInNamespace = "openshift-cluster-csi-drivers"
	builtInClass     = "standard-csi"
)

var builtIn = []cluster.Workload{
	{Kind: "Deployment", Namespace: builtInNamespace, Name: "openstack-cinder-csi-driver-controller"},
	{Kind: "DaemonSet", Namespace: builtInNamespace, Name: "openstack-cinder-csi-driver-node"},
}

// managed tells OpenShift's operator whether it shall write the driver's objects and its StorageClass.
func (a Adoption) managed(state string) string {
	return shell.Line("kubectl", "patch", "clustercsidriver", a.Bundle.DriverName, "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"managementState":"%s","storageClassState":"%s"}}`, state, state))
}

func (a Adoption) openShiftParts() []Part {
	return []Part{
		{"Check first", a.openShiftChecks()},
		{"Before anything stops", a.openShiftBefore()},
		{"The swap", a.openShiftSwap()},
		{"The way back", a.openShiftBack()},
		{"What stays", a.openShiftStays()},
		{"Not proven", []Step{{Text: "No test of this project runs an OpenShift. Try the way on a test cluster first, and watch that " +
			"`oc get clusteroperator storage` stays Available while the built-in driver is Unmanaged and its workloads are gone."}}},
	}
}

func (a Adoption) openShiftChecks() []Step {
	steps := []Step{{
		Text: "See that the built-in driver is healthy and that a person may stop it. On a hosted cluster of platform OpenStack nobody may: its state is set back.",
		Commands: []string{
			"kubectl get clusteroperator storage",
			shell.Line("kubectl", "get", "clustercsidriver", a.Bundle.DriverName, "-o", "jsonpath={.spec.managementState}"),
		},
	}, {
		Text:     fmt.Sprintf("Compare the infrastructure name with %q, by which the bundle marks volumes (spec.clusterID): `openshift-install destroy` removes those with that name.", a.ClusterID),
		Commands: []string{"kubectl get infrastructure cluster -o jsonpath='{.status.infrastructureName}'"},
	}, {
		Text:     "Compare the zones that the built-in driver uses with the topology of the bundle.",
		Commands: []string{fmt.Sprintf("kubectl --namespace %s get configmap cloud-conf -o jsonpath='{.data.enable_topology}'", builtInNamespace)},
	}}
	return append(steps, a.checks()...)
}

func (a Adoption) openShiftBefore() []Step {
	save := Step{Text: "Save the CSIDriver and the classes, for the way back. The operator itself creates its workloads again.", Commands: []string{
		clean,
		shell.Line("kubectl", "get", "csidriver", a.Bundle.DriverName, "-o", "json") + ` | jq "$clean" > built-in-csidriver.json`,
		fmt.Sprintf(`kubectl get storageclass %s -o json | jq "$clean" > built-in-storageclass.json`, builtInClass),
	}}
	return []Step{save, a.openShiftSecret(), {
		Text:     "Tell OpenShift's operator to write neither the driver's objects nor the class any more. Volumes and pods are not touched.",
		Commands: []string{a.managed("Unmanaged")},
	}}
}

// openShiftSecret: the pods of the bundle start only with the Secret, and nothing serves volumes until then.
func (a Adoption) openShiftSecret() Step {
	s := Step{Text: "Create the namespaces and the credentials Secret; " + a.Dir + "/README.md says how.", Commands: []string{shell.Line("kubectl", "apply", "-f", a.Dir+"/namespace.yaml")}}
	switch {
	case a.Requests && a.Helm:
		s.Text = "Create the namespaces. OpenShift makes the credentials Secret when the chart is installed, and the pods wait for it."
	case a.Requests:
		s.Text = "Create the namespaces, let OpenShift make the credentials Secret, and wait until it is there."
		s.Commands = append(s.Commands, shell.Line("kubectl", "apply", "-f", a.Dir+"/credentialsrequest.yaml"), shell.Line("kubectl", "--namespace", a.namespace("Deployment"), "get", "secrets"))
	}
	return s
}

func (a Adoption) openShiftSwap() []Step {
	stop := Step{Text: "Delete the built-in workloads. When no pod of them is left, delete the CSIDriver. Running pods keep their volumes. Do not delete the classes, or anything that describes volumes."}
	for _, w := range builtIn {
		stop.Commands = append(stop.Commands, remove(w))
	}
	stop.Commands = append(stop.Commands, "kubectl --namespace "+builtInNamespace+" get pods", a.removeDriver())
	steps := []Step{stop, a.apply()}
	if len(a.Bundle.DefaultClasses()) > 0 {
		steps = append(steps, Step{Text: "The bundle has a default class. Take that mark from the built-in one.", Commands: []string{
			"kubectl annotate --overwrite storageclass " + builtInClass + " storageclass.kubernetes.io/is-default-class=false",
		}})
	}
	return append(steps, a.check())
}

func (a Adoption) openShiftBack() []Step {
	s := Step{Text: "Delete the two workloads of the bundle and its CSIDriver. OpenShift's operator then creates its own again. New claims and moved pods wait up to three minutes, for the leases of its former pods. Never use kubectl delete -k: it also deletes the classes and the namespaces."}
	for _, w := range a.Bundle.Workloads {
		s.Commands = append(s.Commands, remove(w))
	}
	s.Commands = append(s.Commands, a.removeDriver(), a.managed("Managed"), "kubectl --namespace "+builtInNamespace+" get pods")
	return []Step{s, {
		Text:     "If the operator does not create the CSIDriver within two minutes, create the saved one.",
		Commands: []string{"kubectl create -f built-in-csidriver.json"},
	}}
}

func (a Adoption) openShiftStays() []Step {
	return []Step{
		{Text: "Volumes, snapshots, claims, PersistentVolumes and VolumeAttachments stay; both drivers use the same handles and the same labels of nodes."},
		{Text: "The class " + builtInClass + " stays and works with the new driver. The classes of the bundle are added."},
		{Text: "OpenShift's operator keeps running, and does nothing for this driver. Its ServiceAccounts, rights, Secret and ConfigMaps stay in " + builtInNamespace + ", for the way back."},
	}
}
