package bundle

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/charts"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// helm adds the plane's values for charts/cinder-csi, and beside them the Namespace objects, which no chart should own.
func (p *plane) helm(t Tree) error {
	if docs := p.namespaces(); len(docs) > 0 {
		if err := p.document(t, namespaceFile, docs...); err != nil {
			return err
		}
	}
	return p.valuesFile(t)
}

// valuesFile adds the values. Those that the chart has by default are left out.
func (p *plane) valuesFile(t Tree) error {
	defaults, err := chartDefaults()
	if err != nil {
		return err
	}
	values := objectOf(differing(p.values(), defaults.values))
	values["chartVersion"] = constant(defaults.version) // a chart of another version refuses the values
	return p.write(t, "values.yaml", writer{compare: byOrder(defaults.order), comments: true}, values)
}

// values are all values that the decisions give.
func (p *plane) values() object {
	r := p.r
	values := object{
		"target":            valueOf(p.target(), refOf(r.OpenShift), refOf(r.Hosted)),
		"plane":             decidedField(r.Hosted, "", p.name),
		"namespaces":        object{"controller": decided(r.ControllerNamespace), "node": decided(r.NodeNamespace)},
		"clusterID":         decided(r.ClusterID),
		"kubernetesVersion": decided(r.KubernetesVersion), // the chart refuses what this version lacks, also where a person adds it by values of their own
		"size":              decided(r.Size),
		"topology":          object{"enabled": decided(r.Topology)},
		"leases":            decided(r.Leases),
		"snapshots":         p.snapshotValues(),
		"nodeLifecycle":     object{"startupTaint": decided(r.StartupTaint), "drainHook": decided(r.DrainHook)},
		"images":            p.imageValues(),
	}
	values["monitoring"] = object{
		"kind": decided(r.Monitoring), "platform": decided(r.PlatformMonitoring), "tls": p.tlsValues(), "alerts": decided(r.Alerts), "dashboards": decided(r.Dashboards),
		"runbookBase": decided(r.RunbookBase),
		"nodePorts":   p.nodePortsValue(), "labels": decided(r.MonitoringLabels),
	}
	driver := object{"name": decided(r.Driver)}
	conf := object{}
	if p.controller {
		driver["pvcAnnotations"] = decided(r.PVCAnnotations)
		conf["controller"] = p.controllerConf
		c := r.Credentials
		values["credentials"] = object{
			"secretName": decidedField(c, "secretName", c.Value.SecretName), "key": decidedField(c, "key", c.Value.Key), "request": decided(r.CredentialsRequest), "caKey": decided(r.CAKey),
		}
		values["caBundle"], values["trustedCA"] = decided(r.CABundle), decided(r.TrustedCA)
		if r.CABundle.Value == "" && !r.TrustedCA.Value {
			values["caConfigMap"] = p.caConfigMapValues()
		}
		values["driftCheck"] = p.driftCheckChart()
		values["networkPolicy"] = p.networkValues()
		values["controller"] = merge(workloadValues(r.Controller), object{"replicas": decided(r.Controller.Replicas), "runAsUser": p.runAsUserValue()})
	}
	if p.controller && p.hosted() {
		values["hypershift"] = object{"kubeconfigSecret": decided(r.KubeconfigSecret), "guestAccess": decided(r.GuestAccess)}
	}
	if p.node {
		conf["node"] = p.nodeConf
		pools := p.poolValues()
		values.addIf(len(pools) > 0, "nodePools", pools)
		values["node"] = merge(workloadValues(r.Node), object{"selinux": p.seLinuxValue()})
	}
	if p.cluster {
		driver["adopted"] = decided(r.Adopted)
		driver["limitRefreshSeconds"] = decided(r.LimitRefresh)
		values["storageClasses"] = p.classValues()
		values.addIf(len(r.AttributesClasses) > 0, "attributesClasses", p.attributesValues())
	}
	values["driver"], values["cloudConf"] = driver, conf
	p.settingValues(values)
	driver["capacity"] = decided(r.Capacity()) // not only the controller's pods depend on it
	return values
}

// target is the kind of cluster as the chart knows it.
func (p *plane) target() string {
	switch {
	case p.hosted():
		return string(v1alpha1.HostedControlPlane)
	case p.openShift():
		return string(v1alpha1.Standalone)
	}
	return string(v1alpha1.Vanilla)
}

// settingValues are the settings of the table, each under its own key.
func (p *plane) settingValues(values object) {
	for _, s := range v1alpha1.Settings {
		d, field, value := p.setting(s)
		if s.Role == v1alpha1.ControllerRole && !p.controller || s.Role == v1alpha1.NodeRole && !p.node || value == nil {
			continue
		}
		keys := strings.Split(s.Key, ".")
		at := values
		for _, key := range keys[:len(keys)-1] {
			if at[key] == nil {
				at[key] = object{}
			}
			at = at[key].(object)
		}
		at[keys[len(keys)-1]] = decidedField(d, field, value)
	}
}

// runAsUserValue is auto where the chart decides as the plan did.
func (p *plane) runAsUserValue() node {
	if user := p.r.Controller.RunAsUser; user.Source != plan.Default {
		return decided(user)
	}
	return decidedField(p.r.Controller.RunAsUser, "", v1alpha1.Auto)
}

// seLinuxValue is auto where the chart decides as the plan did.
func (p *plane) seLinuxValue() node {
	set := v1alpha1.Disabled
	switch s := p.r.SELinux; {
	case s.Value == p.openShift():
		set = v1alpha1.Auto
	case s.Value:
		set = v1alpha1.Enabled
	}
	return decidedField(p.r.SELinux, "", set)
}

func (p *plane) caConfigMapValues() object {
	ca := p.r.CASource
	if ca.Value.ConfigMap == "" {
		return object{}
	}
	return object{"name": decidedField(ca, "configMap", ca.Value.ConfigMap), "key": decidedField(ca, "key", ca.Value.Key)}
}

func (p *plane) snapshotValues() node {
	s := p.r.SnapshotClass
	values := object{"enabled": decidedField(s, "enabled", s.Value.Enabled)}
	if p.cluster && s.Value.Enabled {
		if own, _ := v1alpha1.SnapshotClassNames(p.r.Driver.Value); s.Value.Name != own { // else the chart names it so
			values["className"] = decidedField(s, "name", s.Value.Name)
		}
		values["default"] = decidedField(s, "default", s.Value.Default)
		values["force"] = decidedField(s, "snapshotInUse", !s.Value.InUse)
		classes := list{}
		if b := p.r.BackupClass; b.Value.Enabled {
			classes = append(classes, object{"name": decidedField(b, "name", b.Value.Name), "deletionPolicy": decidedField(b, "", "Delete"), "parameters": under(p.backupParameters(), refOf(b))})
		}
		for _, d := range p.r.SnapshotClasses {
			classes = append(classes, furtherClassValues(d))
		}
		values.addIf(len(classes) > 0, "extraClasses", classes)
	}
	return values
}

func furtherClassValues(d plan.Decision[plan.FurtherSnapshotClass]) object {
	c := d.Value
	class := object{"name": decidedField(d, "", c.Name), "deletionPolicy": decidedField(d, "deletionPolicy", c.DeletionPolicy)}
	class.addIf(c.Default, "default", decidedField(d, "default", true))
	class.addIf(len(c.Parameters) > 0, "parameters", decidedField(d, "parameters", c.Parameters))
	class.addIf(len(c.Annotations) > 0, "annotations", decidedField(d, "annotations", c.Annotations))
	return class
}

func (p *plane) attributesValues() node {
	classes := list{}
	for _, d := range p.r.AttributesClasses {
		classes = append(classes, object{"name": decidedField(d, "", d.Value.Name), "parameters": decidedField(d, "parameters", d.Value.Parameters)})
	}
	return classes
}

func (p *plane) networkValues() node {
	n := p.r.NetworkPolicy
	if !n.Value.Enabled {
		return object{"enabled": decidedField(n, "enabled", false)}
	}
	return object{
		"enabled": decidedField(n, "enabled", true), "ports": decidedField(n, "ports", n.Value.Ports), "cidrs": decidedField(n, "cidrs", n.Value.CIDRs),
		"apiServerCIDRs": decidedField(n, "apiServerCIDRs", n.Value.APIServerCIDRs), "metricsNamespaces": decidedField(n, "metricsNamespaces", n.Value.MetricsNamespaces),
		"apiServerPorts": decidedField(n, "apiServerPorts", n.Value.APIServerPorts), "dnsCIDRs": decidedField(n, "dnsCIDRs", n.Value.DNSCIDRs),
	}
}

func workloadValues(w plan.Workload) object {
	values := object{
		"priorityClassName": decided(w.PriorityClass),
		"tolerations":       decided(w.Tolerations),
		"imagePullSecrets":  decided(w.ImagePullSecrets),
		"proxy": object{
			"http": decidedField(w.Proxy, "http", w.Proxy.Value.HTTP), "https": decidedField(w.Proxy, "https", w.Proxy.Value.HTTPS), "noProxy": decidedField(w.Proxy, "noProxy", w.Proxy.Value.NoProxy),
		},
		"nodeSelector":   decided(w.NodeSelector),
		"podLabels":      decided(w.PodLabels),
		"resources":      decided(w.Resources),
		"podAnnotations": decided(w.PodAnnotations),
		"settings":       ownSettings(w),
	}
	strategy := strategyValues(w.UpdateStrategy)
	values.addIf(len(w.Spread.Value) > 0, "topologySpreadConstraints", decided(w.Spread))
	values.addIf(w.Affinity.Value != nil, "affinity", decided(w.Affinity))
	values.addIf(strategy != nil, "updateStrategy", strategy)
	return values
}

func (p *plane) classValues() node {
	classes := list{}
	for _, d := range p.r.StorageClasses {
		c := d.Value
		v := object{
			"name":                 decidedField(d, "", c.Name),
			"reclaimPolicy":        p.reclaimPolicy(d),
			"volumeBindingMode":    p.bindingMode(d),
			"allowVolumeExpansion": p.expansion(d),
		}
		zones := p.zoneLabels(c)
		v.addIf(c.Name == p.r.DefaultClass.Value, "default", decidedField(p.r.DefaultClass, "", true))
		v.addIf(len(c.Parameters) > 0, "parameters", decidedField(d, "parameters", c.Parameters))
		v.addIf(len(c.MountOptions) > 0, "mountOptions", decidedField(d, "mountOptions", c.MountOptions))
		v.addIf(len(c.Annotations) > 0, "annotations", decidedField(d, "annotations", c.Annotations))
		v.addIf(len(zones) > 0, "zones", also(decidedField(d, "allowedZones", zones), refOf(p.r.Topology)))
		classes = append(classes, v)
	}
	return classes
}

func (p *plane) imageValues() node {
	values := object{}
	for _, i := range p.images() {
		name, tag, digest := plan.SplitImage(i.is.Value)
		registry, repository, _ := strings.Cut(name, "/")
		if values[i.role] == nil {
			values[i.role] = object{}
		}
		image := object{
			"registry": decidedField(i.is, "", registry), "repository": decidedField(i.is, "", repository), "tag": decidedField(i.is, "", tag), "digest": decidedField(i.is, "", digest),
		}
		if policy := i.policies.Value[i.container]; policy != "" {
			image["pullPolicy"] = decidedField(i.policies, i.container, policy)
		}
		values[i.role].(object)[i.container] = image
	}
	return values
}

// chartValues is what the chart's values.yaml has.
type chartValues struct {
	values  map[string]any
	order   map[string]int // keys in the order of the file
	version string         // the chart's
}

// chartDefaults reads the embedded chart; it is the same in every run.
var chartDefaults = sync.OnceValues(func() (*chartValues, error) {
	const file = "cinder-csi/values.yaml"
	text, err := fs.ReadFile(charts.Files, file)
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	var fields map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("charts/%s: %w", file, err)
	}
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("charts/%s: %w", file, err)
	}
	version, err := chartVersion()
	if err != nil {
		return nil, err
	}
	d := &chartValues{fields, map[string]int{}, version}
	d.number(&root)
	return d, nil
})

func chartVersion() (string, error) {
	const file = "cinder-csi/Chart.yaml"
	text, err := charts.Files.ReadFile(file)
	if err != nil {
		return "", err
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return chart.Version, nil
}

// number gives the keys of a mapping their places, outer ones before inner ones.
func (d *chartValues) number(n *yaml.Node) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && d.order[child.Value] == 0 {
			d.order[child.Value] = len(d.order) + 1
		}
	}
	for _, child := range n.Content {
		d.number(child)
	}
}
