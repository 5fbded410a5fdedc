package migrate

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

func (p *proposal) readDaemonSet(d document) error {
	sets := p.known.nodePools
	if pool := sets.pool(d); pool != nil {
		return p.readPool(pool)
	}
	if sets != nil && sets.left[d.identity()] != "" {
		p.note("the DaemonSet", "", sets.left[d.identity()])
		return nil
	}
	return p.walk(daemonSetRules, "", d.yaml, leftoverOfObject)
}

// readPool compares a DaemonSet with that of all nodes. Only what a pool cannot have of its own gets a note key by key.
func (p *proposal) readPool(pool *nodePool) error {
	main := p.known.nodePools.main
	template, err := podTemplate(pool.document)
	if err != nil {
		return p.problem("%w", err)
	}
	mainTemplate, err := podTemplate(main)
	if err != nil {
		return p.problem("%w", err)
	}
	p.note("spec.template.spec.nodeSelector", inNodePools, "the pool "+pool.Name+". What "+workloadName(main)+" has too is that of all nodes")
	dir, mainDir := kubeletDir(template.Spec), kubeletDir(mainTemplate.Spec)
	if dir != mainDir {
		pool.KubeletDir = dir
		p.note("spec.template.spec.volumes", inNodePools, "the kubeletDir of the pool")
	}
	own, all := tolerationsOf(template), tolerationsOf(mainTemplate)
	if !reflect.DeepEqual(own, all) {
		pool.Tolerations = own
		p.note("spec.template.spec.tolerations", inNodePools, "")
	}
	of, ofMain := specOf(pool.document, dir, mainDir), specOf(main, mainDir, mainDir)
	p.noteDifferences(pool, "spec", of, ofMain)
	return nil
}

func kubeletDir(pod corev1.PodSpec) string {
	return cmp.Or(cluster.Workload{Pod: pod}.KubeletDir(), usualKubeletDir)
}

// tolerationsOf is never nil: no tolerations are a choice too.
func tolerationsOf(template corev1.PodTemplateSpec) []v1alpha1.Toleration {
	all := []v1alpha1.Toleration{}
	for _, t := range template.Spec.Tolerations {
		all = append(all, v1alpha1.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect), TolerationSeconds: t.TolerationSeconds})
	}
	return all
}

// specOf is the spec of a DaemonSet as if it had another directory of kubelet.
func specOf(d document, dir, as string) map[string]any {
	text, err := json.Marshal(d.yaml["spec"])
	if err != nil {
		return nil
	}
	var spec map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), dir, as)), &spec); err != nil {
		return nil
	}
	return spec
}

// noteDifferences names each key that a pool has otherwise than all nodes.
func (p *proposal) noteDifferences(pool *nodePool, above string, of, ofMain map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(either(of, ofMain))) {
		path := join(above, key)
		a, b := of[key], ofMain[key]
		if reflect.DeepEqual(a, b) || (value{a}).empty() && (value{b}).empty() {
			continue
		}
		switch path {
		case "spec.selector", "spec.template.spec.nodeSelector", "spec.template.spec.tolerations": // the pool has its own
		case "spec.template", "spec.template.metadata", "spec.template.spec":
			below, _ := a.(map[string]any)
			belowMain, _ := b.(map[string]any)
			p.noteDifferences(pool, path, below, belowMain)
		case "spec.template.metadata.labels":
			p.noteMap(path, a, b, upstreamLabel)
		case "spec.template.metadata.annotations":
			p.noteMap(path, a, b, installersAnnotation)
		case "spec.template.spec.affinity":
			p.notePoolAffinity(path, a, b)
		case "spec.template.spec.containers", "spec.template.spec.initContainers":
			p.noteContainers(a, b)
		case "spec.template.spec.volumes":
			p.noteVolumes(pool, a, b)
		default:
			p.note(path, "", asAllNodes)
		}
	}
}

// notePoolAffinity compares the affinity of a pool with what all nodes have of theirs.
func (p *proposal) notePoolAffinity(path string, a, b any) {
	var of, ofMain v1alpha1.Affinity
	if (value{a}).into(&of) == nil && (value{b}).into(&ofMain) == nil {
		if p.known.nodePools.withoutPools(&ofMain); reflect.DeepEqual(of, ofMain) {
			return
		}
	}
	p.note(path, "", asAllNodes)
}

// noteMap is for labels and annotations; others have to do with some of them.
func (p *proposal) noteMap(path string, a, b any, others func(string) bool) {
	of, _ := a.(map[string]any)
	ofMain, _ := b.(map[string]any)
	chosen := func(m map[string]any) map[string]any {
		m = maps.Clone(m)
		maps.DeleteFunc(m, func(key string, _ any) bool { return others(key) })
		return m
	}
	if a, b := chosen(of), chosen(ofMain); len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
		p.note(path, "", asAllNodes)
	}
}

func byName(list any) map[string]map[string]any {
	all := map[string]map[string]any{}
	elements, _ := list.([]any)
	for _, e := range elements {
		if fields, _ := e.(map[string]any); fields != nil {
			name, _ := fields["name"].(string)
			all[name] = fields
		}
	}
	return all
}

func (p *proposal) noteContainers(a, b any) {
	of, ofMain := byName(a), byName(b)
	for _, name := range slices.Sorted(maps.Keys(either(of, ofMain))) {
		for _, field := range slices.Sorted(maps.Keys(either(of[name], ofMain[name]))) {
			if !reflect.DeepEqual(of[name][field], ofMain[name][field]) {
				p.note("container "+name+" "+field, "", asAllNodes)
			}
		}
	}
}

// either has the keys of both mappings.
func either[T any](a, b map[string]T) map[string]T {
	all := map[string]T{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func (p *proposal) noteVolumes(pool *nodePool, a, b any) {
	of, ofMain := byName(a), byName(b)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if reflect.DeepEqual(of[name], ofMain[name]) {
			continue
		}
		why := asAllNodes
		if of[name]["secret"] != nil || of[name]["projected"] != nil || of[name]["configMap"] != nil && !pool.document.live {
			why = limitOfPool
		}
		p.note("volume "+name, "", why)
	}
}

// readPoolConfig reads a ConfigMap that only the pods of a pool mount.
func (p *proposal) readPoolConfig(pool *nodePool, data map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		name := "data " + key
		if !isConfText(text) {
			p.note(name, "", asAllNodes)
			continue
		}
		conf, err := p.conf(name, text)
		if err != nil {
			return err
		}
		for _, s := range conf.Sections {
			for _, k := range s.Keys {
				at := "[" + s.Name + "] " + k.Name
				if !strings.EqualFold(s.Name, config.BlockStorage) || !strings.EqualFold(k.Name, "node-volume-attach-limit") {
					p.note(at, "", asAllNodes)
					continue
				}
				set := func(_ *proposal, v value) error {
					limit, err := attachLimit(v)
					if err == nil {
						pool.VolumeAttachLimit = &limit
					}
					return err
				}
				if err := p.apply(rule{to: inNodePools, why: "the volumeAttachLimit of the pool " + pool.Name, set: set}, at, value{k.Value}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
