package bundle

import (
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// helm adds the plane's values for charts/cinder-csi, and beside them the Namespace objects, which no chart should own.
func (p *plane) helm(t Tree) error {
	if docs := p.namespaces(); len(docs) > 0 {
		if err := p.document(t, "namespace.yaml", docs...); err != nil {
			return err
		}
	}
	images, err := p.imageValues()
	if err != nil {
		return err
	}
	r := p.r
	driver := object{"name": r.Driver.Value.Name, "logLevel": r.Driver.Value.LogLevel}
	values := object{
		"target":     r.Target,
		"plane":      p.name,
		"namespaces": object{"controller": r.Namespaces.Value.Controller, "node": r.Namespaces.Value.Node},
		"driver":     driver,
		"clusterID":  r.ClusterID.Value,
		"topology":   object{"enabled": r.Topology.Value.Enabled},
		"leases":     p.leases(),
		"snapshots":  object{"enabled": p.snapshots()},
		"images":     images,
	}
	if period := p.r.LimitRefresh.Value; p.cluster && period > 0 {
		driver["limitRefreshSeconds"] = period
	}
	conf := object{}
	if p.controller {
		driver["pvcAnnotations"] = r.PVCAnnotations.Value
		conf["controller"] = p.controllerConf
		values["credentials"] = object{"secretName": r.Credentials.Value.SecretName, "key": r.Credentials.Value.Key}
		values["caBundle"] = p.ca()
		values["networkPolicy"] = p.networkValues()
		workload := workloadValues(r.Controller.Value)
		workload["replicas"], workload["runAsUser"] = r.Controller.Value.Replicas, r.Controller.Value.RunAsUser
		values["controller"] = workload
	}
	if p.controller && p.hosted() {
		values["hypershift"] = object{"kubeconfigSecret": r.Config.HyperShift.KubeconfigSecret}
	}
	if p.node {
		conf["node"] = p.nodeConf
		values["node"] = workloadValues(r.Node.Value)
	}
	values["cloudConf"] = conf
	if p.cluster {
		values["storageClasses"] = p.classValues()
	}
	if p.cluster && p.snapshots() {
		values["snapshots"] = object{"enabled": true, "className": r.SnapshotClass.Value.Name, "default": p.defaultSnapshotClass(), "force": !r.SnapshotClass.Value.InUse}
	}
	return p.document(t, "values.yaml", values)
}

func (p *plane) networkValues() object {
	n := p.r.NetworkPolicy.Value
	if !n.Enabled {
		return object{"enabled": false}
	}
	return object{
		"enabled": true, "ports": n.Ports, "cidrs": orEmpty(n.CIDRs),
		"apiServerCIDRs": orEmpty(n.APIServerCIDRs), "metricsNamespaces": orEmpty(n.MetricsNamespaces),
	}
}

// workloadValues are whole: a list or map of the chart's defaults never mixes with the plan's.
func workloadValues(w plan.Workload) object {
	v := object{
		"priorityClassName": w.PriorityClass,
		"tolerations":       tolerations(w.Tolerations),
		"imagePullSecrets":  orEmpty(w.ImagePullSecrets),
		"proxy":             object{"http": w.Proxy.HTTP, "https": w.Proxy.HTTPS, "noProxy": w.Proxy.NoProxy},
	}
	if len(w.NodeSelector) > 0 {
		v["nodeSelector"] = w.NodeSelector
	}
	if len(w.PodLabels) > 0 {
		v["podLabels"] = w.PodLabels
	}
	if len(w.Resources) > 0 {
		v["resources"] = w.Resources
	}
	return v
}

func (p *plane) classValues() []object {
	list := []object{}
	for _, d := range p.r.StorageClasses {
		c := d.Value
		v := object{
			"name":                 c.Name,
			"reclaimPolicy":        c.ReclaimPolicy,
			"volumeBindingMode":    c.VolumeBindingMode,
			"allowVolumeExpansion": c.AllowVolumeExpansion,
		}
		if c.Default {
			v["default"] = true
		}
		if len(c.Parameters) > 0 {
			v["parameters"] = c.Parameters
		}
		if len(c.MountOptions) > 0 {
			v["mountOptions"] = c.MountOptions
		}
		if len(c.Annotations) > 0 {
			v["annotations"] = c.Annotations
		}
		if zones := p.zoneLabels(c); len(zones) > 0 {
			v["zones"] = zones
		}
		list = append(list, v)
	}
	return list
}

// imageValues are the images that differ from the chart's own, which are the same pins.
func (p *plane) imageValues() (object, error) {
	images, err := p.images()
	if err != nil {
		return nil, err
	}
	values := object{}
	for _, i := range images {
		role, container, _ := strings.Cut(strings.TrimPrefix(i.Name, "cinder-csi/"), "-")
		w := p.r.Controller.Value
		if role == "node" {
			w = p.r.Node.Value
		}
		if w.Images[container] == (v1alpha1.Image{}) {
			continue
		}
		if values[role] == nil {
			values[role] = object{}
		}
		registry, repository, _ := strings.Cut(i.NewName, "/")
		values[role].(object)[container] = object{"registry": registry, "repository": repository, "tag": i.NewTag, "digest": i.Digest}
	}
	return values, nil
}

// orEmpty writes [] for nothing: in values a null would delete the chart's default instead of replacing it.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
