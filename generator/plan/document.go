package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The ids of decisions that others look for. A class's is ClassID and its name.
const (
	IDOpenShift           = "target.openshift"
	IDHosted              = "target.hostedControlPlane"
	IDAdopted             = "openshift.adopted"
	IDCSIDriver           = "csiDriver"
	IDDriverName          = "driver.name"
	IDTopologyKey         = "driver.topologyKey"
	IDLogLevel            = "driver.logLevel"
	IDLogFormat           = "driver.logFormat"
	IDKubeletDir          = "driver.kubeletDir"
	IDCapacity            = "driver.capacity"
	IDRequests            = "driver.requestsPerSecond"
	IDMetadata            = "driver.metadata"
	IDDrainTimeout        = "driver.drainTimeout"
	IDProtectOthers       = "driver.protectOtherClusters"
	IDSELinux             = "driver.seLinux"
	IDVolumeMetadata      = "driver.volumeMetadata"
	IDServerMetadata      = "driver.serverMetadata"
	IDPVCAnnotations      = "driver.pvcAnnotations"
	IDStartupTaint        = "nodeLifecycle.startupTaint"
	IDDrainHook           = "nodeLifecycle.drainHook"
	IDControllerNamespace = "namespaces.controller"
	IDNodeNamespace       = "namespaces.node"
	IDClusterID           = "clusterID"
	IDCredentials         = "credentials"
	IDCredentialsRequest  = "credentials.request"
	IDMetricsTLS          = "monitoring.tls"
	IDPlatformMonitoring  = "monitoring.platform"
	IDCABundle            = "credentials.caBundle"
	IDCASource            = "credentials.caConfigMap"
	IDTrustedCA           = "trustedCA"
	IDMonitoring          = "monitoring.kind"
	IDAlerts              = "monitoring.alerts"
	IDDashboards          = "monitoring.dashboards"
	IDDriftCheck          = "driftCheck"
	IDKubeconfigSecret    = "hypershift.kubeconfigSecret"
	IDGuestAccess         = "hypershift.guestAccess"
	IDLeases              = "leases"
	IDTopology            = "topology.enabled"
	IDZoneMap             = "topology.zoneMap"
	IDBindingMode         = "storageClasses.volumeBindingMode"
	IDReclaimPolicy       = "storageClasses.reclaimPolicy"
	IDExpansion           = "storageClasses.allowVolumeExpansion"
	ClassID               = "storageClass."
	AttributesClassID     = "attributesClass."
	IDDefaultClass        = "defaultClass"
	IDSnapshotClass       = "snapshotClass"
	IDBackupClass         = "snapshotClass.backup"
	IDCloudConf           = "cloudConf"
	IDAttachLimit         = "volumeAttachLimit"
	IDLimitRefresh        = "volumeAttachLimit.refreshSeconds"
	IDNetworkPolicy       = "networkPolicy"
	IDController          = "controller"
	IDNode                = "node"
	ImageID               = "images."
)

// entry is a decision of any type, as a document holds it.
type entry struct {
	doc     v1alpha1.Decision
	unsaid  bool // it changes nothing and nobody asked for it: the document leaves it out
	restore func(d v1alpha1.Decision) error
}

func entryOf[T any](d *Decision[T]) entry {
	v := reflect.ValueOf(d.Value)
	empty := !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	return entry{
		doc:    v1alpha1.Decision{ID: d.ID, Value: d.Value, Reason: d.Reason, Facts: d.Facts, Source: string(d.Source)},
		unsaid: empty && d.Reason == "",
		restore: func(doc v1alpha1.Decision) error {
			text, err := json.Marshal(doc.Value)
			if err != nil {
				return err
			}
			d.ID, d.Reason, d.Facts, d.Source = doc.ID, doc.Reason, doc.Facts, Source(doc.Source)
			return json.Unmarshal(text, &d.Value)
		},
	}
}

// entries are the decisions in the order of a document. Only this list names them all: a document is written and read by it.
func (r *Result) entries() []entry {
	list := []entry{
		entryOf(&r.OpenShift), entryOf(&r.Hosted), entryOf(&r.Adopted), entryOf(&r.Driver), entryOf(&r.TopologyKey), entryOf(&r.LogLevel),
		entryOf(&r.LogFormat), entryOf(&r.KubeletDir), entryOf(&r.Capacity), entryOf(&r.Requests), entryOf(&r.DrainTimeout), entryOf(&r.ProtectOthers), entryOf(&r.VolumeMetadata), entryOf(&r.ServerMetadata), entryOf(&r.Metadata), entryOf(&r.SELinux),
		entryOf(&r.CSIDriver), entryOf(&r.PVCAnnotations), entryOf(&r.StartupTaint), entryOf(&r.DrainHook), entryOf(&r.ControllerNamespace), entryOf(&r.NodeNamespace), entryOf(&r.ClusterID),
		entryOf(&r.Credentials), entryOf(&r.CredentialsRequest), entryOf(&r.CABundle), entryOf(&r.CASource), entryOf(&r.TrustedCA), entryOf(&r.KubeconfigSecret), entryOf(&r.GuestAccess), entryOf(&r.Leases), entryOf(&r.Topology), entryOf(&r.ZoneMap),
		entryOf(&r.BindingMode), entryOf(&r.ReclaimPolicy), entryOf(&r.Expansion),
	}
	for i := range r.StorageClasses {
		list = append(list, entryOf(&r.StorageClasses[i]))
	}
	for i := range r.AttributesClasses {
		list = append(list, entryOf(&r.AttributesClasses[i]))
	}
	list = append(list, entryOf(&r.DefaultClass), entryOf(&r.SnapshotClass), entryOf(&r.BackupClass), entryOf(&r.CloudConf), entryOf(&r.AttachLimit),
		entryOf(&r.LimitRefresh), entryOf(&r.Monitoring), entryOf(&r.Alerts), entryOf(&r.Dashboards), entryOf(&r.MetricsTLS), entryOf(&r.PlatformMonitoring), entryOf(&r.DriftCheck), entryOf(&r.NetworkPolicy))
	list = append(list, imageEntries(r.Images)...)
	list = append(list, r.Controller.entries()...)
	return append(list, r.Node.entries()...)
}

func (w *Workload) entries() []entry {
	list := []entry{
		entryOf(&w.Replicas), entryOf(&w.PriorityClass), entryOf(&w.NodeSelector), entryOf(&w.Tolerations), entryOf(&w.PodLabels),
		entryOf(&w.ImagePullSecrets), entryOf(&w.RunAsUser), entryOf(&w.Proxy), entryOf(&w.Resources),
		entryOf(&w.PullPolicies), entryOf(&w.Affinity), entryOf(&w.Spread), entryOf(&w.PodAnnotations), entryOf(&w.Env), entryOf(&w.ExtraArgs),
		entryOf(&w.UpdateStrategy),
	}
	return append(list, imageEntries(w.Images)...)
}

func imageEntries(images map[string]Decision[string]) []entry {
	var list []entry
	for _, name := range slices.Sorted(maps.Keys(images)) {
		d := images[name]
		e := entryOf(&d)
		restore := e.restore
		e.restore = func(doc v1alpha1.Decision) error {
			err := restore(doc)
			images[name] = d
			return err
		}
		list = append(list, e)
	}
	return list
}

// Document is the Plan that is written beside the files of a bundle: what was decided, under public ids, in a fixed order.
func (r Result) Document(files []v1alpha1.File) v1alpha1.Plan {
	p := v1alpha1.Plan{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.KindPlan,
		Generator:  r.Generator,
		Simulated:  r.Simulated,
		Cloud:      r.Cloud,
		Target:     r.Target,
		Format:     r.Format,
		Config:     r.Config,
		Given:      r.Given,
		Warnings:   r.Warnings,
		Files:      files,
	}
	for _, e := range r.entries() {
		if e.unsaid {
			continue
		}
		if e.doc.ID == IDCABundle {
			e.doc.Value = certificateCount(r.CABundle.Value)
		}
		p.Decisions = append(p.Decisions, e.doc)
	}
	return p
}

func certificateCount(pem string) string {
	if pem == "" {
		return v1alpha1.None
	}
	return fmt.Sprintf("%d certificates", strings.Count(pem, beginCertificate))
}

// FromDocument is the Result that a document was made of, without its notices: what a bundle on disk was rendered from. It fails on
// a decision that this version does not know.
func FromDocument(p v1alpha1.Plan) (Result, error) {
	r := Result{
		Generator: p.Generator, Simulated: p.Simulated, Cloud: p.Cloud, Target: p.Target, Format: p.Format, Config: p.Config, Given: p.Given, Warnings: p.Warnings,
		Images:     map[string]Decision[string]{},
		Controller: Workload{Images: map[string]Decision[string]{}}, Node: Workload{Images: map[string]Decision[string]{}},
	}
	r.identify()
	for _, d := range p.Decisions {
		if name, isClass := strings.CutPrefix(d.ID, ClassID); isClass {
			r.StorageClasses = append(r.StorageClasses, Decision[StorageClass]{ID: d.ID, Value: StorageClass{Name: name}})
		}
		if name, isClass := strings.CutPrefix(d.ID, AttributesClassID); isClass {
			r.AttributesClasses = append(r.AttributesClasses, Decision[AttributesClass]{ID: d.ID, Value: AttributesClass{Name: name}})
		}
		for prefix, images := range map[string]map[string]Decision[string]{
			ImageID: r.Images, IDController + "." + ImageID: r.Controller.Images, IDNode + "." + ImageID: r.Node.Images,
		} {
			if name, isImage := strings.CutPrefix(d.ID, prefix); isImage {
				images[name] = Decision[string]{ID: d.ID}
			}
		}
	}
	restore := map[string]func(v1alpha1.Decision) error{}
	for _, e := range r.entries() {
		restore[e.doc.ID] = e.restore
	}
	for _, d := range p.Decisions {
		if restore[d.ID] == nil {
			return Result{}, fmt.Errorf("plan.yaml has a decision %s that this version does not know; generator %s made it", d.ID, p.Generator)
		}
		if d.ID == IDCABundle {
			d.Value = p.Config.Credentials.CABundle
		}
		if err := restore[d.ID](d); err != nil {
			return Result{}, fmt.Errorf("plan.yaml: decision %s: %w", d.ID, err)
		}
	}
	for i := range r.StorageClasses {
		c := &r.StorageClasses[i].Value
		c.Default = r.DefaultClass.Value == c.Name
	}
	return r, nil
}

// DecisionOf finds a decision in a document by its id.
func DecisionOf(p v1alpha1.Plan, id string) (v1alpha1.Decision, bool) {
	i := slices.IndexFunc(p.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })
	if i < 0 {
		return v1alpha1.Decision{}, false
	}
	return p.Decisions[i], true
}
