//go:build openshift

package openshift

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// unnoticed are objects and fields that only a bundle for OpenShift has, and whose removal admission does not see. Tests of generator/verify hold them:
// the rows of the parity table, TestEveryPodOnOpenShiftRequiresItsConstraint, and the policies about SELinux and about metrics.
var unnoticed = []string{
	"hypershift CronJob cinder-csi-drift-check spec.jobTemplate.spec.template.metadata.annotations",
	"hypershift DaemonSet cinder-csi-node spec.template.metadata.annotations.target.workload.openshift.io/management",
	"hypershift DaemonSet cinder-csi-node spec.template.spec.containers[livenessprobe].securityContext.seLinuxOptions",
	"hypershift DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.allowPrivilegeEscalation",
	"hypershift DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.privileged",
	"hypershift DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.seLinuxOptions",
	"hypershift Deployment cinder-csi-controller spec.template.metadata.annotations.cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
	"hypershift Deployment cinder-csi-controller spec.template.metadata.annotations.openshift.io/required-scc",
	"hypershift Namespace node metadata.labels.openshift.io/cluster-monitoring",
	"standalone CronJob cinder-csi-drift-check spec.jobTemplate.spec.template.metadata.annotations",
	"standalone DaemonSet cinder-csi-node spec.template.metadata.annotations.target.workload.openshift.io/management",
	"standalone DaemonSet cinder-csi-node spec.template.spec.containers[livenessprobe].securityContext.seLinuxOptions",
	"standalone DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.allowPrivilegeEscalation",
	"standalone DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.privileged",
	"standalone DaemonSet cinder-csi-node spec.template.spec.initContainers[registrar].securityContext.seLinuxOptions",
	"standalone Deployment cinder-csi-controller spec.template.metadata.annotations.openshift.io/required-scc",
	"standalone Deployment cinder-csi-controller spec.template.metadata.annotations.target.workload.openshift.io/management",
	"standalone Namespace  metadata.labels.openshift.io/cluster-monitoring",
	"standalone Namespace node metadata.labels.openshift.io/cluster-monitoring",
	"standalone ServiceAccount cinder-csi-metrics-reader",
}

// admissionReads are parts of the places of fields about which admission decides. A test of generator/verify holds the others.
var admissionReads = []string{"annotations", "securityContext", "serviceAccountName"}

// mutations removes each object and field that a bundle for OpenShift has and one for vanilla has not. Admission must see it, or unnoticed has it.
func (r *run) mutations(t *testing.T) {
	var mu sync.Mutex
	var missed []string
	t.Run("each", func(t *testing.T) {
		for _, target := range []v1alpha1.Target{v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
			decided := testenv.Value(decide(everything(target), target))(t)
			vanilla := testenv.Value(decide(everything(v1alpha1.Vanilla), v1alpha1.Vanilla))(t)
			objects := objectsOf(t, decided, v1alpha1.Kustomize)
			for _, m := range added(install(vanilla, objectsOf(t, vanilla, v1alpha1.Kustomize), "x"), install(decided, objects, "x")) {
				if !m.isAboutAdmission() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", target, m), func(t *testing.T) {
					t.Parallel()
					i := install(decided, objects, r.name())
					m.apply(i)
					if !r.notices(t, i) {
						mu.Lock()
						defer mu.Unlock()
						missed = append(missed, string(target)+" "+m.String())
					}
				})
			}
		}
	})
	slices.Sort(missed)
	if diff := cmp.Diff(unnoticed, missed); diff != "" {
		t.Errorf("what admission does not see (-listed +seen):\n%s", diff)
	}
}

// mutation is the removal of an object, or of a field of one.
type mutation struct {
	kind, name string // the name begins with the prefix of the installation
	at         field.Path
}

func (m mutation) String() string {
	return strings.TrimSuffix(m.kind+" "+strings.TrimPrefix(m.name, "-")+" "+m.at.String(), " ")
}

func (m mutation) isAboutAdmission() bool {
	last := m.at.String()
	if strings.Contains(last, "cinder-csi.io/config-hash") || last == "metadata.namespace" {
		return false // a hash of settings; a field without which no API server takes the object
	}
	return !slices.Contains([]string{"Deployment", "DaemonSet", "CronJob"}, m.kind) ||
		slices.ContainsFunc(admissionReads, func(part string) bool { return strings.Contains(last, part) })
}

// nameIn is the name of an object without the prefix of its installation.
func nameIn(i *installation, o object) string {
	return strings.TrimPrefix(text(o, "metadata", "name"), i.controller)
}

// added are the mutations of what the second installation has beside the first.
func added(without, with *installation) []mutation {
	var all []mutation
	for _, o := range with.objects {
		kind, _ := o["kind"].(string)
		at := slices.IndexFunc(without.objects, func(other object) bool { return other["kind"] == kind && nameIn(without, other) == nameIn(with, o) })
		if at < 0 {
			all = append(all, mutation{kind: kind, name: nameIn(with, o)})
			continue
		}
		all = append(all, below(kind, nameIn(with, o), nil, without.objects[at], o)...)
	}
	return all
}

// below are the fields of an object that another one lacks, the whole of each, and those with another value.
func below(kind, name string, path field.Path, without, with any) []mutation {
	var all []mutation
	for _, leaf := range field.Leaves(with, path) {
		rest := leaf[len(path):]
		value, _ := field.At(with, rest)
		if other, has := field.At(without, rest); has && reflect.DeepEqual(other, value) {
			continue
		}
		// The whole of what is new, such as a container, is one mutation.
		end := 1
		for end < len(rest) {
			if _, has := field.At(without, rest[:end]); !has {
				break
			}
			end++
		}
		m := mutation{kind, name, slices.Clone(leaf[:len(path)+end])}
		if !slices.ContainsFunc(all, func(o mutation) bool { return o.String() == m.String() }) {
			all = append(all, m)
		}
	}
	return all
}

func (m mutation) apply(i *installation) {
	for n, o := range i.objects {
		if o["kind"] != m.kind || nameIn(i, o) != m.name {
			continue
		}
		if len(m.at) == 0 {
			i.objects = slices.Delete(i.objects, n, n+1)
			return
		}
		i.objects[n] = without(o, m.at).(object)
		return
	}
}

// without is a copy of a value that lacks a field.
func without(v any, path field.Path) any {
	switch v := v.(type) {
	case object:
		copied := object{}
		for key, value := range v {
			switch {
			case key != path[0]:
				copied[key] = value
			case len(path) > 1:
				copied[key] = without(value, path[1:])
			}
		}
		return copied
	case []any:
		var copied []any
		for n, value := range v {
			named := "[" + text(value, "name") + "]"
			switch {
			case named != path[0] && fmt.Sprintf("[%d]", n) != path[0]:
				copied = append(copied, value)
			case len(path) > 1:
				copied = append(copied, without(value, path[1:]))
			}
		}
		return copied
	}
	return v
}

// notices reports whether a pod is refused, or is admitted with another result than that of the bundle as generated.
func (r *run) notices(t *testing.T, i *installation) bool {
	t.Helper()
	ranges := r.create(t, i)
	for _, w := range i.objects {
		if template(w) == nil {
			continue
		}
		want := cases[0].verdict(r, w["kind"] == "DaemonSet", template(w))
		if problem := r.dry(w, func(_ string, got object, err error) string {
			return compare(want, got, err, ranges[text(w, "metadata", "namespace")], template(w), false, false)
		}); problem != "" {
			t.Log(problem)
			return true
		}
	}
	return false
}
