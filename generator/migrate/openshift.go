package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

var infrastructureRules = []rule{
	{key: "status.infrastructureName", to: "spec.clusterID, or spec.hypershift.infraID of a hosted cluster", set: setInfrastructureName},
	{key: "status.controlPlaneTopology", to: "spec.openshift.controlPlaneTopology", set: setTopologyOfControlPlane},
	{key: "status.platformStatus.type", to: "spec.hypershift.platform of a hosted cluster", set: setPlatform},
	{key: "status.infrastructureTopology", why: "the controller runs on the nodes of the control plane, not of the workers"},
	{key: "spec.cloudConfig", why: "it names the ConfigMap with cloud.conf; import that ConfigMap"},
	{key: "spec.platformSpec", why: "the driver does not depend on it"},
}

func setInfrastructureName(p *proposal, v value) error {
	name, err := v.text()
	if p.known.hosted {
		p.Spec.HyperShift.InfraID, p.to = name, "spec.hypershift.infraID"
	} else {
		p.Spec.ClusterID, p.to = name, "spec.clusterID"
	}
	return err
}

func setTopologyOfControlPlane(p *proposal, v value) error {
	if p.known.hosted {
		return leave("a hosted control plane has a policy of its own, controllerAvailabilityPolicy")
	}
	topology, err := v.text()
	if err != nil {
		return err
	}
	known := []string{v1alpha1.SingleReplica, v1alpha1.HighlyAvailable, v1alpha1.HighlyAvailableArbiter, v1alpha1.DualReplica, v1alpha1.External}
	if !slices.Contains(known, topology) {
		return fmt.Errorf("it is none of %s", strings.Join(known, ", "))
	}
	p.Spec.OpenShift.ControlPlaneTopology = topology
	return nil
}

func setPlatform(p *proposal, v value) error {
	platform, err := v.text()
	switch {
	case err != nil:
		return err
	case p.known.hosted:
		p.Spec.HyperShift.Platform, p.to = platform, "spec.hypershift.platform"
		return nil
	case platform != openStackPlatform:
		return leave("only on platform OpenStack does OpenShift have a built-in Cinder driver beside which the bundle could run")
	}
	return leave("the bundle runs beside the built-in driver of this platform, unless spec.openshift.coexistence is adopt")
}

const openStackPlatform = "OpenStack"

// proxyOfController tells whose proxy it is: the nodes call no service of OpenStack.
const proxyOfController = "of the cluster in which the controller runs, with HyperShift the management cluster"

var proxyRules = []rule{
	{key: "status.httpProxy", to: "spec.roles.controller.proxy.http", why: proxyOfController, set: setProxy("HTTP_PROXY")},
	{key: "status.httpsProxy", to: "spec.roles.controller.proxy.https", why: proxyOfController, set: setProxy("HTTPS_PROXY")},
	{key: "status.noProxy", to: "spec.roles.controller.proxy.noProxy", why: proxyOfController, set: setProxy("NO_PROXY")},
	{key: "spec.httpProxy", to: "spec.roles.controller.proxy.http", why: proxyOfController, set: unlessInStatus("httpProxy", setProxy("HTTP_PROXY"))},
	{key: "spec.httpsProxy", to: "spec.roles.controller.proxy.https", why: proxyOfController, set: unlessInStatus("httpsProxy", setProxy("HTTPS_PROXY"))},
	{key: "spec.noProxy", to: "spec.roles.controller.proxy.noProxy", why: proxyOfController, set: unlessInStatus("noProxy", setProxy("NO_PROXY"))},
	{key: "spec.trustedCA.name", to: "spec.trustedCA", set: setTrustedCA},
	{key: "spec.readinessEndpoints", why: "the driver does not depend on it"},
}

func setProxy(variable string) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		text, err := v.text()
		switch {
		case err != nil:
			return err
		case hasLogin(text):
			return leave("it may hold a password, which a Distribution must not")
		case variable == "NO_PROXY" && !p.document.hasProxy():
			return leave("there is no proxy")
		}
		*proxyField(&p.Spec.Roles.Controller.Proxy, variable) = text
		return nil
	}
}

// hasProxy is whether a Proxy names one. A cluster without a proxy has the object too.
func (d document) hasProxy() bool {
	return d.text("status", "httpProxy")+d.text("status", "httpsProxy")+d.text("spec", "httpProxy")+d.text("spec", "httpsProxy") != ""
}

// unlessInStatus: the status has what is in effect, and OpenShift completes noProxy there.
func unlessInStatus(key string, set func(*proposal, value) error) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		if there := valueAt(p.document.yaml, "status", key); !(value{there}).empty() {
			return leave("status." + key + " has what is in effect")
		}
		return set(p, v)
	}
}

// setTrustedCA follows the built-in driver: with a CA of OpenStack's endpoints it trusts only that one.
func setTrustedCA(p *proposal, _ value) error {
	if p.known.cloudCA {
		return leave("the driver trusts one file of certificates, and a ConfigMap has those of OpenStack")
	}
	p.Spec.TrustedCA = true
	return nil
}

var networkRules = []rule{
	{key: "status.serviceNetwork", to: "spec.openshift.clusterNetworks", set: addNetworks(serviceNetworks)},
	{key: "status.clusterNetwork", to: "spec.openshift.clusterNetworks", set: addNetworks(podNetworks)},
	{key: "spec.serviceNetwork", to: "spec.openshift.clusterNetworks", set: unlessInStatus("serviceNetwork", addNetworks(serviceNetworks))},
	{key: "spec.clusterNetwork", to: "spec.openshift.clusterNetworks", set: unlessInStatus("clusterNetwork", addNetworks(podNetworks))},
}

func serviceNetworks(v value) (all []string, err error) { return all, v.into(&all) }

func podNetworks(v value) (all []string, err error) {
	var list []struct{ CIDR string }
	err = v.loosely(&list)
	for _, network := range list {
		if all = append(all, network.CIDR); network.CIDR == "" {
			err = errType
		}
	}
	return all, err
}

func addNetworks(read func(value) ([]string, error)) func(*proposal, value) error {
	return func(p *proposal, v value) error {
		networks, err := read(v)
		for _, n := range networks {
			p.Spec.OpenShift.ClusterNetworks = appendNew(p.Spec.OpenShift.ClusterNetworks, n)
		}
		return err
	}
}

var clusterCSIDriverRules = []rule{
	{key: "spec.logLevel", to: "spec.driver.logLevel", set: setOpenShiftLogLevel},
	{key: "spec.operatorLogLevel", why: "it is for OpenShift's operator, which the bundle does not need"},
	{key: "spec.managementState", why: "it says whether OpenShift's operator maintains the built-in driver; spec.openshift.coexistence says whether the bundle replaces that driver"},
	{key: "spec.storageClassState", why: "it is about the class of the built-in driver; spec.storageClasses is about those of the bundle"},
	{key: "spec.driverConfig", why: "it has no settings for Cinder"},
	{key: "spec.observedConfig", why: "it is a copy of what Proxy and APIServer have; import those"},
	{key: "spec.unsupportedConfigOverrides", why: "it is for OpenShift's operator, which the bundle does not need"},
}

// setOpenShiftLogLevel gives the driver the level that OpenShift's operator gives it.
func setOpenShiftLogLevel(p *proposal, v value) error {
	name, err := v.text()
	if err != nil {
		return err
	}
	level, known := map[string]int{"Normal": 2, "Debug": 4, "Trace": 6, "TraceAll": 8}[name]
	if !known {
		return fmt.Errorf("it is none of Normal, Debug, Trace, TraceAll")
	}
	p.Spec.Driver.LogLevel = &level
	return nil
}
