package plan

import (
	"cmp"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/manifests"
)

// baseDefaults are what manifests/ says where nothing is configured. It is their only home: decisions read them there.
type baseDefaults struct {
	leases    Leases
	csiDriver CSIDriver
	nodePort  int // the first of the ports of a node
	roles     map[string]baseRole
	requests  map[string]map[string]string // resource requests by role/container
	images    map[string]string            // by role/container
}

// baseRole is how the base runs the pods of a role.
type baseRole struct {
	Replicas      int
	PriorityClass string
	Tolerations   []v1alpha1.Toleration
	RunAsUser     *int64
	Strategy      v1alpha1.UpdateStrategy
}

// base fails only on a file of this program's own that is broken, which every test finds.
var base = sync.OnceValue(func() baseDefaults {
	b, err := readBase(manifests.Files)
	if err != nil {
		panic(err)
	}
	return b
})

// roleOf is the role of the one Deployment and the one DaemonSet.
var roleOf = map[string]string{"Deployment": RoleController, "DaemonSet": RoleNode}

// workloadFile is what is read of a Deployment or a DaemonSet, or of a component's patch of one.
type workloadFile struct {
	Kind string
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
					Resources struct{ Requests map[string]string }
				}
			}
		}
	}
}

func readBase(files fs.FS) (baseDefaults, error) {
	b := baseDefaults{roles: map[string]baseRole{}, requests: map[string]map[string]string{}, images: map[string]string{}}
	if err := b.readImages(files); err != nil {
		return b, err
	}
	var driver struct{ Spec CSIDriver }
	if err := readYAML(files, "base/csidriver/csidriver.yaml", &driver); err != nil {
		return b, err
	}
	b.csiDriver = driver.Spec
	var settings struct{ Data map[string]string }
	if err := readYAML(files, "base/controller/settings.yaml", &settings); err != nil {
		return b, err
	}
	b.leases = Leases{settings.Data["LEASE_DURATION"], settings.Data["LEASE_RENEW_DEADLINE"], settings.Data["LEASE_RETRY_PERIOD"]}
	if err := b.readNodePort(files); err != nil {
		return b, err
	}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !isWorkload(name) {
			return err
		}
		var w workloadFile
		if err := readYAML(files, name, &w); err != nil {
			return err
		}
		role := roleOf[w.Kind]
		pod := w.Spec.Template.Spec
		if strings.HasPrefix(name, "base/") {
			strategy := cmp.Or(w.Spec.Strategy, w.Spec.UpdateStrategy)
			b.roles[role] = baseRole{w.Spec.Replicas, pod.PriorityClassName, pod.Tolerations, pod.SecurityContext.RunAsUser, strategy}
		}
		for _, c := range pod.Containers {
			if c.Resources.Requests != nil { // else a patch of something else
				b.requests[role+"/"+ImageOf(c.Name)] = c.Resources.Requests
			}
		}
		return nil
	})
	return b, err
}

// readNodePort reads the first host port of the nodes, on which livenessprobe listens.
func (b *baseDefaults) readNodePort(files fs.FS) error {
	var settings struct{ Data map[string]string }
	if err := readYAML(files, "base/node/settings.yaml", &settings); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(settings.Data["HEALTHZ_ADDRESS"])
	if err == nil {
		b.nodePort, err = strconv.Atoi(port)
	}
	return err
}

// isWorkload is whether a file may add containers.
func isWorkload(name string) bool {
	switch path.Base(name) {
	case "deployment.yaml", "daemonset.yaml", "snapshotter.yaml":
		return !strings.Contains(name, "-rbac/")
	}
	return false
}

// readImages reads components/images, whose names are cinder-csi/ROLE-CONTAINER.
func (b *baseDefaults) readImages(files fs.FS) error {
	var k struct {
		Images []struct{ Name, NewName, NewTag, Digest string }
	}
	if err := readYAML(files, "components/images/kustomization.yaml", &k); err != nil {
		return err
	}
	for _, i := range k.Images {
		role, container, _ := strings.Cut(strings.TrimPrefix(i.Name, "cinder-csi/"), "-")
		b.images[role+"/"+container] = imageReference(i.NewName, i.NewTag, i.Digest)
	}
	return nil
}

func readYAML(files fs.FS, name string, into any) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}
