package migrate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// survey is what a rule needs of other documents than its own.
type survey struct {
	clusterID      bool            // a values file has clusterID
	credentials    bool            // a file has a key of the credentials
	withoutZones   bool            // a values file or a workload turns topology off
	hosted         bool            // a HostedCluster or a HostedControlPlane is there
	controlPlane   string          // the namespace of its control plane
	identity       map[string]bool // names of the Secrets with the credentials of a hosted cluster
	cloudConfig    string          // the ConfigMap with cloud.conf that Infrastructure names
	cloudConfigKey string
	userConfig     bool           // the ConfigMap cinder-csi-config is there
	cloudCA        bool           // a ConfigMap has a CA of OpenStack's endpoints
	otherSecrets   map[string]int // number of Secrets that the bundle does not need, by argument
	confs          []document     // with credentials
	cloudsYAML     string         // the file that gets the credentials; empty: none
	controller     bool           // a workload runs the controller of the driver
	volumes        Found          // the PersistentVolumes
	volumeFiles    []string       // the arguments with PersistentVolumes
	nodePools      *nodePools     // the DaemonSets of the driver; nil: at most one
	openShift      bool           // an object of OpenShift is there, whose built-in driver keeps its name

	defaultSnapshotClass string // that of the bundle; found while the documents are read
}

// survey reads it. Two hosted clusters are an error: a bundle is for one.
func (in *input) survey() (*survey, error) {
	f := &survey{identity: map[string]bool{}, otherSecrets: map[string]int{}, cloudConfig: providerConfig, cloudConfigKey: "config"}
	var first document
	for _, d := range in.documents {
		f.openShift = f.openShift || slices.Contains([]string{configGroup, operatorGroup, hyperShiftGroup}, d.group())
		switch d.kind() {
		case "HostedCluster", "HostedControlPlane":
			if f.hosted && controlPlaneNamespace(first) != controlPlaneNamespace(d) {
				return nil, fmt.Errorf("%w: %s and %s are of two hosted clusters, and a bundle is for one; give the files of one", ErrFile, first.label(), d.label())
			}
			first, f.hosted, f.controlPlane = d, true, controlPlaneNamespace(d)
			if name := d.text("spec", "platform", "openstack", "identityRef", "name"); name != "" {
				f.identity[name] = true
			}
		case "Infrastructure":
			f.addInfrastructure(d)
		case "PersistentVolume":
			if err := f.addVolume(d); err != nil {
				return nil, err
			}
		case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod":
			template, err := podTemplate(d)
			f.withoutZones = f.withoutZones || err == nil && podTurnsZonesOff(template.Spec)
			f.controller = f.controller || d.kind() != "DaemonSet" && runsDriver(d)
		case "":
			f.clusterID = f.clusterID || d.yaml["clusterID"] != nil && !holdsTemplate(d.yaml["clusterID"])
			f.withoutZones = f.withoutZones || d.conf == nil && turnsZonesOff(d)
		}
	}
	for _, d := range in.documents {
		if name := f.wellKnown(d); d.kind() == "ConfigMap" && (name != "" || d.live || d.hasConf()) {
			f.userConfig = f.userConfig || name == userConfig
			f.cloudCA = f.cloudCA || d.text("data", caKey) != ""
		}
	}
	f.nodePools = findNodePools(in.documents)
	return f, nil
}

func turnsZonesOff(d document) bool {
	topology, given := provisionerTopology(d)
	on, err := value{topology}.yes()
	return given && err == nil && !on || extraArgsTurnZonesOff(d)
}

// extraArgsTurnZonesOff is whether the additional flags of the plugin say so.
func extraArgsTurnZonesOff(d document) bool {
	return slices.ContainsFunc([]any{valueAt(d.yaml, "csi", "plugin", "extraArgs"), valueAt(d.yaml, "csi", "plugin", "controllerPlugin", "extraArgs")}, func(given any) bool {
		args, err := argsOf(value{given})
		return err == nil && strings.EqualFold(flagsOf(corev1.Container{Args: args})["with-topology"], "false")
	})
}

func (f *survey) addInfrastructure(d document) {
	if name := d.text("spec", "cloudConfig", "name"); name != "" {
		f.cloudConfig = name
	}
	if key := d.text("spec", "cloudConfig", "key"); key != "" {
		f.cloudConfigKey = key
	}
}

// controlPlaneNamespace is where HyperShift runs the pods of a hosted control plane.
func controlPlaneNamespace(d document) string {
	if d.kind() == "HostedControlPlane" {
		return d.namespace()
	}
	return d.namespace() + "-" + strings.ReplaceAll(d.name(), ".", "-")
}
