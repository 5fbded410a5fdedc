package migrate

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// nodePools are the DaemonSets of an installation with several of them. Neither upstream's chart nor its manifests make a second one: people copy the
// first. One is that of all nodes, and says what spec.roles.node has. The others are pools.
type nodePools struct {
	main  document // of all nodes
	key   string   // of the one label by which pools select
	pools []*nodePool
	left  map[string]string    // DaemonSets that are no pool: why, by identity
	own   map[string]*nodePool // ConfigMaps and Secrets that only the pods of a pool mount, by identity
}

type nodePool struct {
	v1alpha1.NodePool
	document document
}

const (
	inNodePools = "spec.nodePools"
	asAllNodes  = "a pool has its own nodes, tolerations, kubeletDir and volumeAttachLimit; the rest is as for all nodes (spec.roles.node)"
	limitOfPool = "if its cloud.conf has node-volume-attach-limit, write that into volumeAttachLimit of the pool (" + inNodePools + "); the rest is as for all nodes"
)

// nodePoolRules are for the documentation.
var nodePoolRules = []rule{
	{key: "spec.template.spec.nodeSelector, with one label", to: inNodePools + "[].nodeSelector", why: "the DaemonSet of all nodes is the one with the fewest labels in its nodeSelector, then that of Helm, then the first by name"},
	{key: "spec.template.spec.nodeSelector, with none or several", why: "the whole DaemonSet, because " + noPoolLabel},
	{key: "spec.template.spec.tolerations", to: inNodePools + "[].tolerations", why: "if they differ from those of all nodes"},
	{key: "spec.template.spec.volumes", to: inNodePools + "[].kubeletDir", why: "if it differs from that of all nodes"},
	{key: "[BlockStorage] node-volume-attach-limit, in a mounted ConfigMap of a cluster", to: inNodePools + "[].volumeAttachLimit"},
	{key: "any other", why: asAllNodes},
}

const noPoolLabel = "a pool selects its nodes by one label. Give them one, and write the pool into " + inNodePools + "; without it they are nodes as all others"

// findNodePools is nil where the driver has at most one DaemonSet.
func findNodePools(documents []document) *nodePools {
	var sets []document
	for _, d := range documents {
		if d.kind() == "DaemonSet" && d.group() == appsGroup && runsDriver(d) && !slices.ContainsFunc(sets, func(o document) bool { return o.identity() == d.identity() }) {
			sets = append(sets, d)
		}
	}
	if len(sets) < 2 {
		return nil
	}
	slices.SortFunc(sets, func(a, b document) int {
		return cmp.Or(cmp.Compare(len(selectorOf(a)), len(selectorOf(b))), cmp.Compare(byOthers(a), byOthers(b)), strings.Compare(a.identity(), b.identity()))
	})
	n := &nodePools{main: sets[0], left: map[string]string{}, own: map[string]*nodePool{}}
	of := map[string]string{} // the DaemonSet of the nodes with a label
	if selector := selectorOf(n.main); len(selector) == 1 {
		for key, value := range selector {
			of[key+"="+value] = workloadName(n.main)
		}
	}
	names := map[string]bool{}
	for _, d := range sets[1:] {
		selector := selectorOf(d)
		if len(selector) != 1 {
			n.left[d.identity()] = noPoolLabel
			continue
		}
		for key, value := range selector {
			switch {
			case of[key+"="+value] != "":
				n.left[d.identity()] = of[key+"="+value] + " has the same nodes"
			case n.key != "" && n.key != key:
				n.left[d.identity()] = "all pools select by one label with different values, and " + workloadName(n.pools[0].document) + " has the label " + n.key +
					". Give these nodes that label with a value of their own, and write the pool into " + inNodePools
			default:
				n.key, of[key+"="+value] = key, workloadName(d)
				n.pools = append(n.pools, &nodePool{v1alpha1.NodePool{Name: poolName(key, value, names), NodeSelector: selector}, d})
			}
		}
	}
	n.findMounts(documents)
	return n
}

// byOthers is 1 for a DaemonSet that Helm did not make.
func byOthers(d document) int {
	if d.text("metadata", "labels", "app.kubernetes.io/managed-by") == "Helm" || d.text("metadata", "annotations", "meta.helm.sh/release-name") != "" {
		return 0
	}
	return 1
}

// workloadName is what notes about other objects call a DaemonSet.
func workloadName(d document) string { return strings.TrimSpace(d.kind() + " " + d.name()) }

// selectorOf is the nodeSelector without what the pods of every bundle have.
func selectorOf(d document) map[string]string {
	template, err := podTemplate(d)
	if err != nil {
		return nil // reading it says so
	}
	selector := maps.Clone(template.Spec.NodeSelector)
	delete(selector, corev1.LabelOSStable)
	return selector
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// poolName is a name that a pool may have: of the value of its label, or of the label where the value says nothing.
func poolName(key, value string, used map[string]bool) string {
	if value == "" || value == "true" {
		value = key[strings.LastIndexByte(key, '/')+1:]
	}
	const room = 38 // of 40, with a further letter and its hyphen
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(value), "-"), "-")
	name = cmp.Or(strings.Trim(name[:min(len(name), room)], "-"), "pool")
	unique := name
	for letter := 'b'; used[unique]; letter++ {
		unique = name + "-" + string(letter)
	}
	used[unique] = true
	return unique
}

func (n *nodePools) findMounts(documents []document) {
	shared := map[string]bool{}
	for _, d := range documents {
		pool := n.pool(d)
		if d.kind() != "Deployment" && d.kind() != "DaemonSet" || !runsDriver(d) {
			continue
		}
		template, _ := podTemplate(d) // runsDriver has read it
		for _, v := range template.Spec.Volumes {
			for _, from := range mounts(v) {
				identity := from.kind + " " + d.namespace() + "/" + from.name
				if shared[identity] || n.own[identity] != nil && n.own[identity] != pool || pool == nil {
					shared[identity] = true
					delete(n.own, identity)
					continue
				}
				n.own[identity] = pool
			}
		}
	}
}

// pool is the pool that a DaemonSet becomes; nil: none.
func (n *nodePools) pool(d document) *nodePool {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.pools, func(p *nodePool) bool { return p.document.identity() == d.identity() })
	if i < 0 {
		return nil
	}
	return n.pools[i]
}

// mountedBy is the pool whose pods alone mount a ConfigMap or a Secret of a cluster; nil: none.
func (n *nodePools) mountedBy(d document) *nodePool {
	if n == nil || !d.live {
		return nil
	}
	return n.own[d.identity()]
}

func (n *nodePools) proposed() []v1alpha1.NodePool {
	if n == nil {
		return nil
	}
	var all []v1alpha1.NodePool
	for _, p := range n.pools {
		all = append(all, p.NodePool)
	}
	slices.SortFunc(all, func(a, b v1alpha1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return all
}
