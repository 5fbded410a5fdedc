package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// The steps, in the order of a volume's life.
const (
	stepClaim  = "claim"
	stepClass  = "class"
	stepSource = "source"
	stepPod    = "pod"
	stepCreate = "create"
	stepBind   = "bind"
	stepAttach = "attach"
	stepDetach = "detach"
	stepMount  = "mount"
	stepExpand = "expand"
	stepDelete = "delete"
	stepModify = "modify"
	// stepCompare is what Cinder and Kubernetes say differently.
	stepCompare = "compare"
)

// walk is one run of Diagnose. Its methods add one step each.
type walk struct {
	Readings
	report  *Report
	blocked bool // a step waits or has failed; the rest comes later
}

// Diagnose walks the steps of a claim up to the first that hangs. It is a pure function.
func Diagnose(f Readings) Report {
	r := Report{Claim: claimOf(f), Time: f.Now, Cause: None, Steps: []Step{}, Unseen: listed(f.Gaps)}
	s := &walk{Readings: f, report: &r}
	steps := []func(){s.claim, s.class, s.source, s.consumer, s.create, s.bind, s.schedule, s.attach, s.mount, s.expand, s.modify, s.compare}
	switch {
	case f.others():
		steps = []func(){s.claim, s.bindOther}
	case s.deleting():
		steps = []func(){s.claim, s.stillUsed, s.detachAll, s.deleteVolume}
	}
	for _, step := range steps {
		step()
	}
	r.Who = string(meaningOf(cause.ID(r.Cause)).Who)
	return r
}

// claimOf names the claim, or the PersistentVolume that never had one.
func claimOf(f Readings) string {
	if f.Name == "" && f.Volume != nil {
		return "(none) of PersistentVolume " + f.Volume.Name
	}
	return f.Namespace + "/" + f.Name
}

// deleting reports whether somebody has deleted the claim or its PersistentVolume. A PersistentVolume without a claim has no other steps.
func (s *walk) deleting() bool {
	v := s.Volume
	return s.Claim == nil && v != nil && !s.unreadable() || s.Claim != nil && s.Claim.DeletionTimestamp != nil || v != nil && v.DeletionTimestamp != nil
}

// theClaim names a gap that the diagnosis asks for.
const theClaim = "the claim"

// unreadable reports whether nobody can tell if the claim exists. A Released PersistentVolume proves that it does not.
func (s *walk) unreadable() bool {
	return s.Claim == nil && s.gapAbout(theClaim) && !released(s.Volume)
}

// released reports whether Kubernetes has seen that the claim of a PersistentVolume is gone. Failed is a release that failed.
func released(v *corev1.PersistentVolume) bool {
	return v != nil && (v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed)
}

func (s *walk) done(name, format string, args ...any) {
	if !s.blocked {
		s.report.Steps = append(s.report.Steps, Step{Name: name, State: Done, What: fmt.Sprintf(format, args...)})
	}
}

// later notes a step that has not begun. It is no hang by itself.
func (s *walk) later(name, format string, args ...any) {
	s.report.Steps = append(s.report.Steps, Step{Name: name, State: Later, What: fmt.Sprintf(format, args...)})
}

// stop ends the walk with its cause.
func (s *walk) stop(id cause.ID, step Step) {
	if s.blocked {
		return
	}
	s.blocked = true
	s.report.Cause = string(id)
	step.State = cmp.Or(step.State, Failed)
	step.Requests = requestsIn(step.Why, step.Requests)
	s.report.Steps = append(s.report.Steps, step)
}

// since is a pointer to a time; nil for the zero time.
func since(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func (s *walk) claim() {
	c := s.Claim
	switch {
	case s.unreadable():
		s.stop(cause.ClaimUnreadable, Step{Name: stepClaim, State: Unseen, What: "the claim cannot be read", Why: "the user of the kubeconfig may not read it", Do: []string{"use a kubeconfig that may read claims in namespace " + s.Namespace}})
	case c == nil && s.Volume != nil && s.Name == "":
		s.done(stepClaim, "no claim uses PersistentVolume %s, which is %s", s.Volume.Name, s.Volume.Status.Phase)
	case c == nil && released(s.Volume):
		s.done(stepClaim, "the claim is gone; PersistentVolume %s is %s", s.Volume.Name, s.Volume.Status.Phase)
	case c == nil && s.Volume != nil:
		s.done(stepClaim, "there is no claim %s; PersistentVolume %s is %s", s.report.Claim, s.Volume.Name, s.Volume.Status.Phase)
	case c == nil:
		s.stop(cause.ClaimMissing, Step{
			Name: stepClaim, What: "there is no claim " + s.report.Claim + ", and no PersistentVolume was bound to one",
			Do: []string{s.inNamespace("get", "pvc")},
		})
	case c.Status.Phase == corev1.ClaimLost && !s.others():
		s.stop(cause.ClaimLost, Step{
			Name: stepClaim, What: "the claim is Lost", Since: since(c.CreationTimestamp.Time), Why: "PersistentVolume " + c.Spec.VolumeName + " is gone",
			Do: []string{"if the Cinder volume still exists, create its PersistentVolume again: " + pages.ImportAVolume.String(), run("openstack", "volume", "list", "--name", volumeName(*c))},
		})
	case c.DeletionTimestamp != nil:
		s.done(stepClaim, "the claim is being deleted")
	default:
		s.done(stepClaim, "the claim is %s and asks for %s", c.Status.Phase, c.Spec.Resources.Requests.Storage())
	}
}

// static reports whether the claim names its PersistentVolume before it is bound: then no driver creates a volume for it.
func (s *walk) static() bool { return s.Claim != nil && !s.bound() && s.Claim.Spec.VolumeName != "" }

func (s *walk) bound() bool { return s.Claim != nil && s.Claim.Status.Phase == corev1.ClaimBound }

func (s *walk) class() {
	switch name := s.className(); {
	case s.blocked:
	case name == "" && s.static():
		s.done(stepClass, "the claim names no StorageClass; it is for PersistentVolume %s", s.Claim.Spec.VolumeName)
	case name == "" && s.Claim != nil && s.Claim.Spec.StorageClassName != nil && !s.bound():
		s.stop(cause.ClassMissing, Step{
			Name: stepClass, State: Waiting, What: "the claim has storageClassName \"\": it asks for no class", Since: since(s.Claim.CreationTimestamp.Time), Why: "so no driver creates a volume for it; it waits for a PersistentVolume without a class",
			Do: []string{"create a PersistentVolume without a class, or delete the claim and name a class", run("kubectl", "get", "persistentvolumes")},
		})
	case s.Class != nil:
		s.done(stepClass, "StorageClass %s uses driver %s", name, s.Class.Provisioner)
	case s.bound() || s.gapAbout("the StorageClass"):
		s.done(stepClass, "StorageClass %s was not read; the claim needs it no more, or it cannot be read", orNone(name))
	case name == "":
		s.stop(cause.ClassMissing, Step{
			Name: stepClass, State: Waiting, What: "the claim names no StorageClass", Since: since(s.Claim.CreationTimestamp.Time), Why: "there was no default StorageClass",
			Do: []string{"make a class the default, or delete the claim and name a class in its spec.storageClassName", run("kubectl", "get", "storageclass")},
		})
	default:
		s.stop(cause.ClassMissing, Step{
			Name: stepClass, State: Waiting, What: "StorageClass " + name + " does not exist", Since: since(s.Claim.CreationTimestamp.Time),
			Why: "the claim names it in spec.storageClassName, which cannot be changed",
			Do:  []string{"create the class, or delete the claim and create it with a class that exists", run("kubectl", "get", "storageclass")},
		})
	}
}

func orNone(name string) string {
	return cmp.Or(name, "(none)")
}

func (s *walk) className() string { return (&reader{readings: &s.Readings}).className() }

func (s *walk) gapAbout(what string) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.What == what })
}

func (s *walk) source() {
	p := s.Snapshot
	if s.blocked || s.bound() || p == nil {
		return
	}
	step := Step{
		Name: stepSource, State: Waiting, What: "VolumeSnapshot " + p.Name + " is not ready", Since: since(p.Created.Time), Why: p.Error,
		Do: []string{s.inNamespace("describe", "volumesnapshot", shell.Name(p.Name, "SNAPSHOT"))},
	}
	switch {
	case p.Missing:
		step.What, step.Do = "VolumeSnapshot "+p.Name+" does not exist", []string{"create it, or delete the claim", s.inNamespace("get", "volumesnapshot")}
		s.stop(cause.SourceNotReady, step)
	case !p.Ready:
		switch {
		case p.Error != "":
			step.State = Failed
		case !p.Handled:
			step.Why = "it has no status: no snapshot-controller has handled it. The cluster has one for all drivers, and no bundle of this driver brings it"
			step.Do = append([]string{
				"install or repair the snapshot-controller; its CRDs alone are not enough",
				run("kubectl", "get", "deployments", "--all-namespaces", "--field-selector", "metadata.name=snapshot-controller"),
			}, step.Do...)
		}
		s.stop(cause.SourceNotReady, step)
	default:
		s.done(stepSource, "VolumeSnapshot %s is ready", p.Name)
	}
}

// first is a pointer to the first item that matches; nil if none does.
func first[T any](all []T, matches func(T) bool) *T {
	i := slices.IndexFunc(all, matches)
	if i < 0 {
		return nil
	}
	return &all[i]
}

// event is the newest event that a component wrote for one of the reasons.
func (s *walk) event(reasons ...string) *corev1.Event {
	return first(s.Events, func(e corev1.Event) bool { return slices.Contains(reasons, e.Reason) })
}

func (s *walk) eventOf(kind string, reasons ...string) *corev1.Event {
	return first(s.Events, func(e corev1.Event) bool { return e.InvolvedObject.Kind == kind && slices.Contains(reasons, e.Reason) })
}

func firstOf(e *corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return lastOf(*e)
}

// operation is the oldest operation in progress of one of the methods.
func (s *walk) operation(methods ...string) *Operation {
	return first(s.Operations, func(o Operation) bool { return slices.Contains(methods, o.Method) })
}

func (s *walk) attachmentAt(node string) *storagev1.VolumeAttachment {
	return first(s.Attachments, func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
}
