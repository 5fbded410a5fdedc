package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// checker checks one plane: what is applied to one cluster.
type checker struct {
	plane    string
	readme   string
	objects  []Object
	findings []Finding

	at      Object // being checked
	byID    map[string]any
	drivers []string // names of CSIDrivers
	typed   []typedObject

	hostPorts ports // of the nodes, where pods use the host's network or a hostPort
}

type typedObject struct {
	Object
	value any
}

func (c *checker) find(format string, args ...any) {
	c.findings = append(c.findings, Finding{Object: c.at.String(), Problem: fmt.Sprintf(format, args...)})
}

func (c *checker) run() {
	c.byID = map[string]any{}
	for _, o := range c.objects {
		c.at = o
		value, problems := o.typed()
		for _, p := range problems {
			c.find("%s", p)
		}
		c.strings("", "", o.Fields)
		if value == nil {
			continue
		}
		if _, twice := c.byID[id(o.Kind(), o.Namespace(), o.Name())]; twice {
			c.find("is in the plane twice")
		}
		c.byID[id(o.Kind(), o.Namespace(), o.Name())] = value
		c.typed = append(c.typed, typedObject{o, value})
		if o.Kind() == "CSIDriver" {
			c.drivers = append(c.drivers, o.Name())
		}
	}
	for _, t := range c.typed {
		c.at = t.Object
		c.namespace()
		c.object(t.value)
	}
	c.defaults()
}

func id(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func (c *checker) has(kind, namespace, name string) bool {
	_, ok := c.byID[id(kind, namespace, name)]
	return ok
}

// stated is whether the README tells people of something the bundle does not bring along.
func (c *checker) stated(name string) bool { return strings.Contains(c.readme, "`"+name+"`") }

// namespace: it is made by the bundle, or the README says that it must be there.
func (c *checker) namespace() {
	if ns := c.at.Namespace(); ns != "" && !c.has("Namespace", "", ns) && !c.stated(ns) {
		c.find("namespace %s is neither in the bundle nor named by its README", ns)
	}
}

func (c *checker) object(value any) {
	switch v := value.(type) {
	case *corev1.Secret:
		c.tokenSecret(v)
	case *credentialsRequest:
		c.request(v)
	case *corev1.ConfigMap:
		c.configMap(v)
	case *storagev1.StorageClass:
		c.storageClass(v)
	case *volumeSnapshotClass:
		c.snapshotClass(v)
	case *storagev1.VolumeAttributesClass:
		c.ofDriver(v.DriverName)
		c.parameters(func() ([]string, error) {
			_, err := contract.ParseAttributesClass(v.Parameters)
			return nil, err
		})
	case *rbacv1.RoleBinding:
		c.binding(v.RoleRef, v.Subjects)
	case *rbacv1.ClusterRoleBinding:
		c.binding(v.RoleRef, v.Subjects)
	default:
		c.workload(value)
	}
}

// configMap: a cloud.conf in it is one that the driver takes with --strict, and the node's has no credentials to point at.
func (c *checker) configMap(m *corev1.ConfigMap) {
	text, ok := m.Data["cloud.conf"]
	if !ok {
		return
	}
	conf, err := cloudconf.Parse([]byte(text))
	if err != nil {
		c.find("cloud.conf: %v", err)
		return
	}
	_, complaints, err := config.ParseSettings(conf)
	if err != nil {
		c.find("cloud.conf: %v", err)
	}
	for _, complaint := range complaints {
		c.find("cloud.conf: %s", complaint)
	}
	for _, s := range conf.Sections {
		if strings.EqualFold(s.Name, config.Global) && m.Labels["app.kubernetes.io/component"] == "node" {
			c.find("cloud.conf: the node's must not have a [Global] section: nodes hold no credentials")
		}
		for _, secret := range []string{"password", "application-credential-secret", "trustee-password", "token"} {
			if _, there := s.Get(secret); there {
				c.find("cloud.conf: [%s] %s is a secret; it belongs into the credentials Secret", s.Name, secret)
			}
		}
	}
}

func (c *checker) storageClass(class *storagev1.StorageClass) {
	c.ofDriver(class.Provisioner)
	c.parameters(func() ([]string, error) {
		_, unknown, err := contract.ParseStorageClass(class.Parameters)
		return unknown, err
	})
	if name := contract.FileSystemOf(class.Parameters); name != "" && !slices.Contains(contract.FileSystems, name) {
		c.find("parameters: the driver does not create file system %q; use %s", name, strings.Join(contract.FileSystems, ", "))
	}
	if r := class.ReclaimPolicy; r != nil && *r != corev1.PersistentVolumeReclaimDelete && *r != corev1.PersistentVolumeReclaimRetain {
		c.find("reclaimPolicy %q is neither Delete nor Retain", *r)
	}
	if m := class.VolumeBindingMode; m != nil && *m != storagev1.VolumeBindingImmediate && *m != storagev1.VolumeBindingWaitForFirstConsumer {
		c.find("volumeBindingMode %q is neither Immediate nor WaitForFirstConsumer", *m)
	}
	for _, term := range class.AllowedTopologies {
		for _, e := range term.MatchLabelExpressions {
			if e.Key != contract.TopologyKeyOf(class.Provisioner) {
				c.find("allowedTopologies: no node has label %s; the driver's is %s", e.Key, contract.TopologyKeyOf(class.Provisioner))
			}
		}
	}
}

func (c *checker) snapshotClass(class *volumeSnapshotClass) {
	c.ofDriver(class.Driver)
	c.parameters(func() ([]string, error) {
		_, unknown, err := contract.ParseSnapshotClass(class.Parameters)
		return unknown, err
	})
	if class.DeletionPolicy != "Delete" && class.DeletionPolicy != "Retain" {
		c.find("deletionPolicy %q is neither Delete nor Retain", class.DeletionPolicy)
	}
}

func (c *checker) ofDriver(name string) {
	if !slices.Contains(c.drivers, name) {
		c.find("is of driver %q, but the bundle's CSIDriver is %s", name, strings.Join(c.drivers, ", "))
	}
}

func (c *checker) parameters(parse func() (unknown []string, err error)) {
	unknown, err := parse()
	if err != nil {
		c.find("%v", err)
	}
	for _, key := range unknown {
		c.find("parameter %s: the driver does not know it", key)
	}
}

// binding: the role and every account are in the same bundle.
func (c *checker) binding(role rbacv1.RoleRef, subjects []rbacv1.Subject) {
	namespace := ""
	if role.Kind == "Role" {
		namespace = c.at.Namespace()
	}
	if !c.has(role.Kind, namespace, role.Name) {
		c.find("roleRef: there is no %s %s", role.Kind, role.Name)
	}
	for _, s := range subjects {
		if !c.has(s.Kind, s.Namespace, s.Name) && !c.stated(s.Namespace+"/"+s.Name) {
			c.find("subjects: there is no %s %s/%s", s.Kind, s.Namespace, s.Name)
		}
	}
}

// defaults: at most one class is the cluster's default, and at most one snapshot class its driver's.
func (c *checker) defaults() {
	marked := map[string][]string{}
	for _, t := range c.typed {
		object, _ := t.value.(metav1.Object)
		switch t.value.(type) {
		case *storagev1.StorageClass:
			if a := object.GetAnnotations(); a["storageclass.kubernetes.io/is-default-class"] == "true" || a["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
				marked["StorageClass"] = append(marked["StorageClass"], t.Name())
			}
		case *volumeSnapshotClass:
			if object.GetAnnotations()["snapshot.storage.kubernetes.io/is-default-class"] == "true" {
				marked["VolumeSnapshotClass"] = append(marked["VolumeSnapshotClass"], t.Name())
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(marked)) {
		if len(marked[kind]) > 1 {
			c.findings = append(c.findings, Finding{Object: c.plane, Problem: fmt.Sprintf("more than one default %s: %s", kind, strings.Join(marked[kind], ", "))})
		}
	}
}

// fills reports whether the driver fills in the placeholders of a text. Its own parser refuses those that it does not know.
func (c *checker) fills(at string) bool {
	parameter, is := strings.CutPrefix(at, ".parameters.")
	return is && c.at.Kind() == "StorageClass" && contract.IsTemplate(parameter)
}

// strings looks at every text of an object: nothing that was meant to be filled in, no secret. The name is the key of a text, or that of its variable.
func (c *checker) strings(at, name string, value any) {
	switch v := value.(type) {
	case map[string]any:
		variable, _ := v["name"].(string)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := key
			if key == "value" && variable != "" {
				name = variable
			}
			c.strings(at+"."+key, name, v[key])
		}
	case []any:
		for i, e := range v {
			c.strings(fmt.Sprintf("%s[%d]", at, i), "", e)
		}
	case string:
		if strings.Contains(v, "${") && !c.fills(at) {
			c.find("%s: holds a ${…} that nothing fills in", at)
		}
		if kind := secret.InValue(name, v); kind != "" {
			c.find("%s: holds %s", at, kind)
		}
	}
}
