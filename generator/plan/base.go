package plan

import (
	"cmp"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/charts"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/manifests"
)

// baseDefaults are what manifests/ and the values of the chart say where nothing is configured. The chart is their only home: decisions read them there.
type baseDefaults struct {
	leases     Leases
	csiDriver  CSIDriver
	nodePort   int // the first of the ports of a node
	roles      map[string]baseRole
	settings   map[string]map[string]string // the variables of a role
	driverArgs map[string][]string          // of a role
	requests   map[string]map[string]string // resource requests by role/container
	images     map[string]string            // by role/container
}

type baseRole struct {
	Replicas      int
	PriorityClass string
	Tolerations   []v1alpha1.Toleration
	RunAsUser     *int64
	Strategy      v1alpha1.UpdateStrategy
}

// base fails only on a file of this program's own that is broken, which every test finds.
var base = sync.OnceValue(func() baseDefaults {
	b, err := readBase()
	if err != nil {
		panic(err)
	}
	return b
})

type workload struct {
	Spec struct {
		Replicas       int
		Strategy       v1alpha1.UpdateStrategy // of a Deployment
		UpdateStrategy v1alpha1.UpdateStrategy // of a DaemonSet
		Template       struct {
			Spec struct {
				PriorityClassName string
				Tolerations       []v1alpha1.Toleration
				SecurityContext   struct{ RunAsUser *int64 }
				Containers        []struct {
					Name      string
					Args      []string
					Resources struct{ Requests map[string]string }
				}
			}
		}
	}
}

func readBase() (baseDefaults, error) {
	b := baseDefaults{
		roles: map[string]baseRole{}, settings: map[string]map[string]string{}, driverArgs: map[string][]string{},
		requests: map[string]map[string]string{v1alpha1.ControllerRole + "/" + rbacProxy: {"cpu": "10m", "memory": "20Mi"}}, // no default installation has this container
		images:   map[string]string{},
	}
	if err := b.readImages(); err != nil {
		return b, err
	}
	var driver struct{ Spec CSIDriver }
	if err := manifests.Read("CSIDriver", "cinder.csi.openstack.org", &driver); err != nil {
		return b, err
	}
	b.csiDriver = driver.Spec
	for role, kind := range map[string]string{v1alpha1.ControllerRole: "Deployment", v1alpha1.NodeRole: "DaemonSet"} {
		var settings struct{ Data map[string]string }
		if err := manifests.Read("ConfigMap", "cinder-csi-"+role+"-settings", &settings); err != nil {
			return b, err
		}
		b.settings[role] = settings.Data
		var w workload
		if err := manifests.Read(kind, "cinder-csi-"+role, &w); err != nil {
			return b, err
		}
		pod := w.Spec.Template.Spec
		b.roles[role] = baseRole{w.Spec.Replicas, pod.PriorityClassName, pod.Tolerations, pod.SecurityContext.RunAsUser, cmp.Or(w.Spec.Strategy, w.Spec.UpdateStrategy)}
		for _, c := range pod.Containers {
			b.requests[role+"/"+c.Name] = c.Resources.Requests
			if c.Name == "driver" {
				b.driverArgs[role] = c.Args
			}
		}
	}
	controller := b.settings[v1alpha1.ControllerRole]
	b.leases = Leases{controller["LEASE_DURATION"], controller["LEASE_RENEW_DEADLINE"], controller["LEASE_RETRY_PERIOD"]}
	// livenessprobe listens on the first host port of the nodes.
	_, port, err := net.SplitHostPort(b.settings[v1alpha1.NodeRole]["HEALTHZ_ADDRESS"])
	if err == nil {
		b.nodePort, err = strconv.Atoi(port)
	}
	return b, err
}

func (b *baseDefaults) readImages() error {
	images, err := charts.Images()
	for role, ofRole := range images {
		for container, i := range ofRole {
			registry := cmp.Or(i.Registry, strings.TrimSuffix(noRegistry, "/"))
			b.images[role+"/"+container] = imageReference(registry+"/"+i.Repository, i.Tag, i.Digest)
		}
	}
	return err
}
