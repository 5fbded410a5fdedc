package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// selectedNode is set by the scheduler when it has chosen a node for the first pod of a claim (Kubernetes, "Well-Known Labels, Annotations
// and Taints").
const selectedNode = "volume.kubernetes.io/selected-node"

// consumer is the pod that a class with WaitForFirstConsumer waits for.
func (s *walk) consumer() {
	late := s.Class != nil && s.Class.VolumeBindingMode != nil && *s.Class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if s.blocked || s.bound() || !late {
		return
	}
	if node := s.Claim.Annotations[selectedNode]; node != "" {
		s.done(stepPod, "the scheduler has chosen node %s for the first pod", node)
		return
	}
	if len(s.Pods) == 0 {
		s.stop(cause.PodNone, Step{
			Name: stepPod, State: Waiting, What: "no pod uses the claim", Since: since(s.Claim.CreationTimestamp.Time),
			Why: "StorageClass " + s.Class.Name + " has volumeBindingMode WaitForFirstConsumer: the driver creates the volume in the zone of the first pod", Do: []string{"create a pod that uses the claim"},
		})
		return
	}
	if c := notScheduled(s.Pods[0]); c != nil && strings.Contains(c.Message, "provisioning failed for PVC") {
		// The provisioner gives the choice back after a final error, and the scheduler chooses again.
		s.done(stepPod, "the scheduler chooses a node for pod %s again: the driver could not create the volume for the last one", s.Pods[0].Name)
		return
	}
	s.unscheduled(s.Pods[0])
}

// notScheduled is the condition with the message of the scheduler; nil if there is none.
func notScheduled(p corev1.Pod) *corev1.PodCondition {
	return first(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// unscheduled says why the scheduler finds no node.
func (s *walk) unscheduled(p corev1.Pod) {
	step := Step{
		Name: stepPod, State: Waiting, What: "pod " + p.Name + " has no node yet", Since: since(p.CreationTimestamp.Time),
		Do: []string{s.describePod(p)},
	}
	if c := notScheduled(p); c != nil {
		step.Why, step.Since = c.Message, since(c.LastTransitionTime.Time)
	}
	switch {
	case strings.Contains(step.Why, "max volume count"):
		step.Do = append([]string{"add a node, or move pods with volumes from a full node; nodes of other flavors may take more volumes", run("kubectl", "get", "csinode", "-o", "custom-columns=NODE:.metadata.name,VOLUMES:.spec.drivers[*].allocatable.count")}, step.Do...)
		s.stop(cause.PodAttachLimit, step)
	case strings.Contains(step.Why, "volume node affinity conflict"), strings.Contains(step.Why, "PersistentVolume's node affinity"), strings.Contains(step.Why, "available persistent volumes to bind"):
		key, zones := s.zoneOfVolume()
		if key != "" {
			step.Why += " The volume needs a node with " + key + " " + strings.Join(zones, " or ")
		}
		step.Do = append([]string{"free or add a node in the zone of the volume; a volume cannot change its zone", run("kubectl", "get", "nodes", "--label-columns", strings.TrimSuffix("topology.kubernetes.io/zone,"+key, ","))}, step.Do...)
		s.stop(cause.PodZone, step)
	default:
		s.stop(cause.PodUnschedulable, step)
	}
}

// zoneOfVolume is the node affinity of the PersistentVolume: a label and its values. external-provisioner writes one term.
func (s *walk) zoneOfVolume() (key string, zones []string) {
	if s.Volume == nil || s.Volume.Spec.NodeAffinity == nil || s.Volume.Spec.NodeAffinity.Required == nil {
		return "", nil
	}
	for _, term := range s.Volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			return e.Key, e.Values
		}
	}
	return "", nil
}

// create is CreateVolume of the driver, which external-provisioner calls.
func (s *walk) create() {
	if s.blocked {
		return
	}
	if s.bound() || s.Volume != nil {
		text := s.volumeText()
		if s.Cloud != nil && s.Cloud.Missing {
			text = "the claim has Cinder volume " + s.volumeID()
		}
		s.done(stepCreate, "%s", text)
		return
	}
	if s.static() {
		s.stop(cause.BindWaiting, Step{
			Name: stepBind, State: Waiting, What: "PersistentVolume " + s.Claim.Spec.VolumeName + " of the claim does not exist", Since: since(s.Claim.CreationTimestamp.Time),
			Why: "the claim names it in spec.volumeName", Do: []string{"create the PersistentVolume: " + pages.ImportAVolume.String(), run("kubectl", "get", "persistentvolumes")},
		})
		return
	}
	failed, o := s.event("ProvisioningFailed"), s.operation("CreateVolume")
	text := s.errorText(failed, o)
	if s.driverDown(stepCreate, s.Claim.CreationTimestamp.Time, failed, text) {
		return
	}
	began := s.Claim.CreationTimestamp.Time
	if failed != nil {
		began = firstOf(failed)
	}
	switch {
	case text != "":
		s.driverError(stepCreate, "the driver cannot create the volume", began, text, o)
	case s.Cloud != nil && s.Cloud.Volume != nil && s.Cloud.Volume.Status == "error":
		s.stop(cause.CreateError, Step{Name: stepCreate, What: s.volumeText(), Since: since(s.Cloud.Volume.Created.Time), Why: s.Cloud.Message, Do: s.showVolume()})
	default:
		s.stop(cause.CreateWaiting, s.waiting(stepCreate, "the driver creates the volume", began, o))
	}
}

func (s *walk) waiting(name, what string, began time.Time, o *Operation) Step {
	step := Step{Name: name, State: Waiting, What: what, Since: since(began), Do: append([]string{"wait; if this stays for more than five minutes, read the log of the driver"}, s.controllerLog()...)}
	if c := s.Cloud; c != nil && c.Volume != nil {
		step.What += "; " + s.volumeText()
	}
	if o == nil {
		return step
	}
	step.Since, step.Requests = since(o.Since), o.Requests
	step.Why = fmt.Sprintf("calls of %s so far: %d", o.Method, o.RPCs)
	if o.Step != "" && o.StepSince != nil {
		step.Why += fmt.Sprintf("; the driver is %s, since %s", o.Step, age(s.Now.Sub(*o.StepSince)))
	}
	if o.State != "" {
		step.Why += "; last seen: " + o.State
	}
	if o.LastError != "" {
		step.Why += "; the call before ended with " + o.LastCode + ": " + o.LastError
	}
	return step
}

// error is the last error of an operation, as an event has it. The page may have cut it before its cause.
func (o *Operation) error() string {
	text := "rpc error: code = " + o.LastCode + " desc = " + o.LastError
	if cause.In(text) == "" {
		return cause.End(text, o.LastCause)
	}
	return text
}

// errorText is the newest error of the driver. The driver itself knows a newer one than the event, which Kubernetes may have dropped.
func (s *walk) errorText(e *corev1.Event, o *Operation) string {
	if o != nil && o.LastError != "" && !o.Running {
		return o.error()
	}
	if e != nil {
		return e.Message
	}
	return ""
}

// driverDown stops the walk if no controller of the driver works. A fresh event of a sidecar proves that one works somewhere else: with a
// hosted control plane it runs in another cluster. There the recorded error counts, and the step says what nobody sees.
func (s *walk) driverDown(name string, began time.Time, fresh *corev1.Event, recorded string) bool {
	if fresh != nil && s.Now.Sub(lastOf(*fresh)) < 10*time.Minute && !slices.ContainsFunc(s.Controllers, func(p corev1.Pod) bool { return !ready(p) }) {
		return false
	}
	switch {
	case slices.ContainsFunc(s.Gaps, func(g Gap) bool { return strings.HasPrefix(g.What, theControllers) }):
		return false
	case slices.ContainsFunc(s.Controllers, ready):
		return s.noLeader(name, began)
	case len(s.Controllers) > 0 || s.ControllerNamed:
		s.notRunning(name, began, recorded)
		return true
	case recorded != "":
		s.report.Unseen = append(s.report.Unseen, Gap{
			What: "the controller of the driver", Why: "this cluster has no pod of it, so that nobody knows whether the error is still true", Do: hostedAdvice,
		})
		return false
	}
	s.stop(cause.DriverUnseen, Step{
		Name: name, State: Unseen, What: "this cluster has no controller pod of the driver: it does not run, or it runs in another cluster", Since: since(began),
		Do: []string{hostedAdvice, run("kubectl", "get", "deployments", "--all-namespaces", "--selector", controllerLabels)},
	})
	return true
}

const hostedAdvice = "with a hosted control plane name the cluster and the namespace of the controller with --controller-kubeconfig and --driver-namespace"

func (s *walk) notRunning(name string, began time.Time, recorded string) {
	what := "no controller pod of the driver is ready"
	if len(s.Controllers) == 0 {
		what = "there is no controller pod of the driver"
	}
	step := Step{Name: name, State: Waiting, What: what, Since: since(began), Why: s.podTrouble(), Do: []string{
		"start the controller of the driver", run("kubectl", "get", "pods", "--all-namespaces", "--selector", controllerLabels),
	}}
	if recorded != "" {
		step.Why = sentence(step.Why, "the last recorded error is "+readable(recorded))
	}
	s.stop(cause.DriverNotRunning, step)
}

func (s *walk) podTrouble() string {
	var all []string
	for _, p := range s.Controllers {
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				all = append(all, fmt.Sprintf("container %s of pod %s/%s: %s %s", c.Name, p.Namespace, p.Name, w.Reason, w.Message))
			}
		}
	}
	return strings.TrimSpace(strings.Join(all, "; "))
}

// leaseOf are the marks of the sidecars' leases in their names; external-provisioner uses the name of the driver alone.
var leaseOf = map[string]string{stepAttach: "external-attacher", stepDetach: "external-attacher", stepExpand: "external-resizer", stepModify: "external-resizer"}

func (s *walk) noLeader(name string, began time.Time) bool {
	for _, l := range s.Leases {
		_, lease, _ := strings.Cut(l.Name, "/")
		mine := strings.HasPrefix(lease, leaseOf[name])
		if leaseOf[name] == "" {
			mine = !strings.HasPrefix(lease, "external-")
		}
		if !mine || l.Until.IsZero() || s.Now.Before(l.Until) {
			continue
		}
		s.stop(cause.DriverNoLeader, Step{
			Name: name, State: Waiting, What: "lease " + l.Name + " expired " + age(s.Now.Sub(l.Until)) + " ago", Since: since(began),
			Why: "its last holder was " + orNone(l.Holder) + "; no replica of the sidecar has taken it", Do: append([]string{"read the log of the sidecars"}, s.controllerLog()...),
		})
		return true
	}
	return false
}

func (s *walk) bind() {
	switch {
	case s.blocked:
	case s.bound() && s.Claim.Spec.VolumeName != "":
		s.done(stepBind, "the claim is bound to PersistentVolume %s", s.Claim.Spec.VolumeName)
	default:
		s.stop(cause.BindWaiting, Step{Name: stepBind, State: Waiting, What: "the claim is not bound to its PersistentVolume", Do: []string{s.inNamespace("describe", "pvc", claimNamed(s.Name))}})
	}
}

// bindOther says no more about the PersistentVolume than whose it is.
func (s *walk) bindOther() {
	ref, name := s.Volume.Spec.ClaimRef, s.Volume.Name
	what := "PersistentVolume " + name + " belongs to another claim: " + ref.Namespace + "/" + ref.Name
	if ref.Namespace == s.Namespace && ref.Name == s.Name {
		what = "PersistentVolume " + name + " belongs to an earlier claim of this name"
	}
	s.stop(cause.BindOther, Step{
		Name: stepBind, What: what, Since: since(s.Claim.CreationTimestamp.Time), Why: "the claim names it in spec.volumeName, which cannot be changed",
		Do: []string{"delete the claim, and create it without spec.volumeName or with that of a PersistentVolume that no claim has", run("kubectl", "get", "persistentvolumes")},
	})
}

func (s *walk) volumeText() string {
	switch c := s.Cloud; {
	case c != nil && c.Missing:
		return "Cinder has no volume " + s.volumeID()
	case c != nil && c.Volume != nil:
		return fmt.Sprintf("Cinder volume %s is %s, %d GiB, in zone %s", c.Volume.ID, c.Volume.Status, c.Volume.Size, orNone(c.Volume.Zone))
	case s.volumeID() != "":
		return "Cinder volume " + s.volumeID() + " (its status was not read)"
	}
	return "there is no volume yet"
}

func (s *walk) volumeID() string {
	switch {
	case handleOf(s.Volume) != "":
		return handleOf(s.Volume)
	case s.Cloud != nil && s.Cloud.Volume != nil:
		return s.Cloud.Volume.ID
	}
	return ""
}
