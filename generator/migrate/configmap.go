package migrate

import (
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// ConfigMaps of OpenShift and HyperShift that have to do with the driver.
const (
	userConfig      = "cinder-csi-config"      // what an administrator sets, in openshift-config
	providerConfig  = "cloud-provider-config"  // of the cloud controller manager, in openshift-config
	operatorConfig  = "cloud-conf"             // what OpenShift's operator makes of one of them
	hostedConfig    = "openstack-cloud-config" // of the cloud controller manager of a hosted cluster
	hostedTrustedCA = "openstack-trusted-ca"   // the CA of a hosted cluster's OpenStack

	caKey       = "ca-bundle.pem"
	topologyKey = "enable_topology"
)

// ofHyperShift are those that a hosted control plane has in its own namespace.
var ofHyperShift = []string{operatorConfig, hostedConfig, hostedTrustedCA}

// configMapRules are for the documentation; readConfigMap knows ConfigMaps by name. Keys of cloud.conf have their own rows.
var configMapRules = []rule{
	{key: userConfig + " config", to: "the Distribution, by the rows of cloud.conf", why: "but nothing of [Global]"},
	{key: providerConfig + " config", to: "the Distribution, by the rows of cloud.conf", why: "but nothing of [Global], and nothing beside " + userConfig},
	{key: operatorConfig + " cloud.conf", to: "the Distribution, by the rows of cloud.conf", why: "but nothing of [Global]"},
	{key: hostedConfig + " cloud.conf", why: notOurs},
	{key: "* " + topologyKey, to: "spec.topology.mode", why: "without it the generator decides by the rule of OpenShift's operator"},
	{key: "* " + caKey, to: "spec.credentials.caBundle, or spec.credentials.caConfigMap of a hosted cluster"},
	{key: "* any other", why: "the driver does not depend on it"},
}

// isConfigMap is whether a ConfigMap may have settings of the driver. Infrastructure may give the one of the provider any name.
func isConfigMap(d document) bool {
	named := slices.Contains(ofHyperShift, d.name()) || d.namespace() == "" && slices.Contains([]string{userConfig, providerConfig}, d.name())
	return d.live || named || d.namespace() == "openshift-config" || d.hasConf()
}

// hasConf reports whether a text of a ConfigMap is a cloud.conf.
func (d document) hasConf() bool {
	return slices.ContainsFunc(namesIn(d.yaml["data"]), isConfText)
}

// wellKnown is the name by which OpenShift or HyperShift finds a ConfigMap; empty in a namespace where they do not look.
func (f *survey) wellKnown(d document) string {
	if !d.inText && d.owner() == "" || d.owner() == f.controlPlane || slices.Contains(ofOpenShift, d.owner()) {
		return d.name()
	}
	return ""
}

func (p *proposal) readConfigMap(d document) error {
	name := p.known.wellKnown(d)
	confKey := map[string]string{userConfig: "config", operatorConfig: "cloud.conf", p.known.cloudConfig: p.known.cloudConfigKey}[name]
	if name == userConfig && d.text("data", confKey) == "" {
		return p.problem("it lacks the key %s, and OpenShift's operator refuses it too", confKey)
	}
	data, _ := d.yaml["data"].(map[string]any)
	if pool := p.known.nodePools.mountedBy(d); pool != nil {
		return p.readPoolConfig(pool, data)
	}
	switch {
	case d.live, d.hasConf() && (name == "" || confKey == "" && name != hostedConfig && name != providerConfig && d.namespace() != "openshift-config"):
		return p.readMounted(data)
	case name == "":
		p.note("the object", "", "OpenShift and HyperShift do not look for it in this namespace")
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, isText := data[key].(string)
		if !isText {
			return p.problem("data %s: %w", key, errType)
		}
		if err := p.readConfigKey(key, text, confKey); err != nil {
			return err
		}
	}
	binary, _ := d.yaml["binaryData"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		p.note("binaryData "+key, "", "the driver does not depend on it")
	}
	return nil
}

// readMounted reads the texts that the driver of a cluster has mounted: a cloud.conf, or a CA.
func (p *proposal) readMounted(data map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		name := "data " + key
		switch {
		case isConfText(text):
			conf, err := p.conf(name, text)
			if err != nil {
				return err
			}
			if err := p.readCloudConf(document{conf: conf}); err != nil {
				return err
			}
		case strings.Contains(text, "-----BEGIN CERTIFICATE-----"):
			if err := p.apply(rule{set: setCA}, name, value{text}); err != nil {
				return err
			}
		default:
			p.note(name, "", "the driver does not depend on it")
		}
	}
	return nil
}

// conf is the cloud.conf that stands below a key.
func (p *proposal) conf(key, text string) (*cloudconf.File, error) {
	conf, err := cloudconf.Parse([]byte(text))
	if err != nil {
		return nil, p.problem("%s: %w", key, err)
	}
	return conf, nil
}

// readConfigKey follows OpenShift's operator, which takes cloud.conf and enable_topology of the first of two ConfigMaps.
func (p *proposal) readConfigKey(key, text, confKey string) error {
	name := "data " + key
	notFirst := p.known.userConfig && p.document.name() != userConfig && p.document.name() != operatorConfig
	switch {
	case text == "":
		p.note(name, "", "it is empty")
	case key == caKey:
		return p.apply(rule{set: setCA}, name, value{text})
	case (key == confKey || key == topologyKey) && notFirst:
		p.note(name, "", "OpenShift's operator takes it from ConfigMap "+userConfig+", which is there")
	case (key == confKey || key == topologyKey) && p.known.hosted && p.document.name() != operatorConfig:
		p.note(name, "", "OpenShift's operator takes no configuration from a hosted cluster")
	case key == confKey:
		return p.readOpenShiftConf(key, text)
	case key == topologyKey:
		return p.apply(rule{to: "spec.topology.mode", set: setEnableTopology}, name, value{text})
	case key == "cloud.conf" || key == "config":
		p.note(name, "", notOurs)
	default:
		p.note(name, "", "the driver does not depend on it")
	}
	return nil
}

// readOpenShiftConf reads a cloud.conf of OpenShift. Its operator replaces [Global], and so does the bundle.
func (p *proposal) readOpenShiftConf(key, text string) error {
	conf, err := p.conf("data "+key, text)
	if err != nil {
		return err
	}
	for _, s := range conf.Sections {
		if strings.EqualFold(s.Name, config.Global) && s.Subsection == "" {
			for _, k := range s.Keys {
				p.note("[Global] "+k.Name, "", "OpenShift's operator replaces [Global], and so does the bundle; the credentials are those of a Secret that OpenShift maintains")
			}
			continue
		}
		if err := p.readConfSection(s); err != nil {
			return err
		}
	}
	return nil
}

func setEnableTopology(p *proposal, v value) error {
	on, err := v.yes()
	p.Spec.Topology.Mode = v1alpha1.Disabled
	if on {
		p.Spec.Topology.Mode = v1alpha1.Enabled
	}
	return err
}

// setCA takes the certificates, and nothing else that the text may hold. HyperShift keeps them in a ConfigMap beside the controller.
func setCA(p *proposal, v value) error {
	text, err := v.text()
	if err != nil {
		return err
	}
	if p.known.hosted {
		p.Spec.Credentials.CAConfigMap, p.to = hostedTrustedCA, "spec.credentials.caConfigMap"
		return nil
	}
	var out strings.Builder
	for rest := []byte(text); ; {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
		rest = after
	}
	if out.Len() == 0 {
		return leave("it has no certificate in PEM")
	}
	p.Spec.Credentials.CABundle, p.to = out.String(), "spec.credentials.caBundle"
	return nil
}
