package bundle

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/plan"
)

const (
	nodeDaemonSet = "cinder-csi-node"
	// nodeFile is the DaemonSet of all nodes, of which that of a pool is made.
	nodeFile = "base/node/daemonset.yaml"
)

// nodeSet is one of the DaemonSets: that of a pool, or without one that of all other nodes.
type nodeSet struct{ pool *plan.Decision[plan.NodePool] }

// nodeSets are all DaemonSets of the plane.
func (p *plane) nodeSets() []nodeSet {
	sets := []nodeSet{{}}
	for i := range p.r.NodePools {
		sets = append(sets, nodeSet{&p.r.NodePools[i]})
	}
	return sets
}

// daemonSet is the name of the DaemonSet, and of the label app of its pods.
func (s nodeSet) daemonSet() string {
	if s.pool == nil {
		return nodeDaemonSet
	}
	return nodeDaemonSet + "-" + s.pool.Value.Name
}

// patchFile is the file of a patch. A pool has a directory, so that no name of a pool makes two files one.
func (s nodeSet) patchFile(name string) string {
	if s.pool == nil {
		return "patches/" + name
	}
	return "patches/pools/" + s.pool.Value.Name + "/" + name
}

// of is a value that comes from a field of the pool.
func (s nodeSet) of(field string, value any) node { return part(*s.pool, field, value) }

// kubelet is the directory of kubelet on these nodes, and where it comes from.
func (s nodeSet) kubelet(p *plane) (dir string, from Ref) {
	if s.pool != nil && s.pool.Value.KubeletDir != "" {
		return s.pool.Value.KubeletDir, Ref{s.pool.ID, "kubeletDir"}
	}
	d := p.r.KubeletDir()
	return d.Value, refOf(d)
}

// ownKubelet is whether the pool has a directory of its own.
func (s nodeSet) ownKubelet() bool { return s.pool != nil && s.pool.Value.KubeletDir != "" }

// conf is the second cloud.conf of the pods of a pool; empty if they need none.
func (s nodeSet) conf() string {
	if s.pool == nil || s.pool.Value.VolumeAttachLimit == nil {
		return ""
	}
	return fmt.Sprintf("[BlockStorage]\nnode-volume-attach-limit = %d\n", *s.pool.Value.VolumeAttachLimit)
}

func (s nodeSet) confFile() string { return "pool-" + s.pool.Value.Name + ".conf" }

// confs are all that the pods read, as the hash has it.
func (s nodeSet) confs(p *plane) node {
	own := s.conf()
	if own == "" {
		return p.nodeConf
	}
	return from(plain(p.nodeConf).(string)+own, append(refsOf(p.nodeConf), Ref{s.pool.ID, "volumeAttachLimit"})...)
}

// nodeConfigs are the files of the ConfigMap of the nodes.
func (p *plane) nodeConfigs() object {
	files := object{"cloud.conf": p.nodeConf}
	for _, s := range p.nodeSets() {
		if text := s.conf(); text != "" {
			files[s.confFile()] = s.of("volumeAttachLimit", text)
		}
	}
	return files
}

// poolFile is where the overlay has the DaemonSet of a pool, below driverDir.
func (s nodeSet) poolFile() string { return "pools/" + s.pool.Value.Name + ".yaml" }

// pools are the DaemonSets of the pools as the base would have them. Components and patches find them by their label, or by their name.
func (p *plane) pools() (map[string]object, error) {
	all := map[string]object{}
	if !p.node {
		return all, nil
	}
	for _, s := range p.nodeSets() {
		if s.pool == nil {
			continue
		}
		var fields map[string]any
		if err := readManifest(nodeFile, func(text []byte) error { return yaml.Unmarshal(text, &fields) }); err != nil {
			return nil, err
		}
		o := objectOf(from(integers(fields)))
		name := s.of("", s.daemonSet())
		objectAt(o, "metadata")["name"] = name
		objectAt(o, "spec", "selector", "matchLabels")["app"] = name
		objectAt(o, "spec", "template", "metadata", "labels")["app"] = name
		if s.conf() != "" {
			driver := objectAt(o, "spec", "template", "spec")["containers"].(list)[0].(object)
			driver["args"] = append(driver["args"].(list), s.of("volumeAttachLimit", "--cloud-config=/etc/cinder-csi/config/"+s.confFile()))
		}
		all[s.poolFile()] = o
	}
	return all, nil
}

func objectAt(o object, path ...string) object {
	for _, key := range path {
		o = o[key].(object)
	}
	return o
}

// placement puts the pods of a DaemonSet where they belong: those of a pool on its nodes, the others beside all pools.
func (s nodeSet) placement(p *plane, spec object) {
	if s.pool == nil {
		if beside := p.besidePools(); len(beside) > 0 {
			spec["affinity"] = withTerms(objectOf(spec["affinity"]), beside)
		}
		return
	}
	spec["nodeSelector"] = s.of("nodeSelector", s.pool.Value.NodeSelector)
	if t := s.pool.Value.Tolerations; t != nil {
		spec["tolerations"] = p.tolerations(t, s.of("tolerations", t))
	}
}

// besidePools are the conditions that leave the nodes of all pools out: no node may run two of the driver.
func (p *plane) besidePools() list {
	var all list
	for _, s := range p.nodeSets() {
		if s.pool == nil {
			continue
		}
		for key, value := range s.pool.Value.NodeSelector { // one label
			at := "nodeSelector." + key
			all = append(all, object{"key": s.of(at, key), "operator": fixed("NotIn"), "values": list{s.of(at, value)}})
		}
	}
	return all
}

// withTerms adds conditions to each term of a node affinity: terms are alternatives.
func withTerms(affinity object, conditions list) object {
	const required, terms = "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
	nodes := objectOf(affinity["nodeAffinity"])
	configured, _ := objectOf(nodes[required])[terms].(list)
	if len(configured) == 0 {
		configured = list{object{}}
	}
	var all list
	for _, term := range configured {
		expressions, _ := objectOf(term)["matchExpressions"].(list)
		all = append(all, merge(objectOf(term), object{"matchExpressions": append(slices.Clone(expressions), conditions...)}))
	}
	return merge(affinity, object{"nodeAffinity": merge(nodes, object{required: object{terms: all}})})
}

// registrarDir tells the registrar of a pool where kubelet finds the driver.
func (s nodeSet) registrarDir(containers list) {
	for _, c := range containers {
		if o := c.(object); s.ownKubelet() && plain(o["name"]) == "registrar" {
			o["env"] = list{object{"name": s.of("kubeletDir", "KUBELET_DIR"), "value": s.of("kubeletDir", s.pool.Value.KubeletDir)}}
		}
	}
}

// poolValues are the pools as the chart has them.
func (p *plane) poolValues() list {
	var all list
	for _, s := range p.nodeSets() {
		if s.pool == nil {
			continue
		}
		pool := s.pool.Value
		values := object{"name": s.of("", pool.Name), "nodeSelector": s.of("nodeSelector", pool.NodeSelector)}
		if pool.Tolerations != nil {
			values["tolerations"] = s.of("tolerations", pool.Tolerations)
		}
		if pool.VolumeAttachLimit != nil {
			values["volumeAttachLimit"] = s.of("volumeAttachLimit", *pool.VolumeAttachLimit)
		}
		if pool.KubeletDir != "" {
			values["kubeletDir"] = s.of("kubeletDir", pool.KubeletDir)
		}
		all = append(all, values)
	}
	return all
}
