package verify

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload checks what has pods or chooses them.
func (c *checker) workload(value any) {
	switch v := value.(type) {
	case *appsv1.Deployment:
		c.ownPods(v.Spec.Selector, v.Spec.Template)
	case *appsv1.DaemonSet:
		c.ownPods(v.Spec.Selector, v.Spec.Template)
	case *policyv1.PodDisruptionBudget:
		c.choosesPods(v.Spec.Selector)
	case *batchv1.CronJob:
		c.pod(v.Spec.JobTemplate.Spec.Template.Spec)
	case *corev1.Service:
		c.service(v)
	case *monitor:
		c.monitor(v)
	case *networkingv1.NetworkPolicy:
		c.choosesPods(&v.Spec.PodSelector)
		for i, rule := range v.Spec.Ingress {
			c.policyPorts(fmt.Sprintf("ingress[%d]", i), rule.Ports)
		}
		for i, rule := range v.Spec.Egress {
			c.policyPorts(fmt.Sprintf("egress[%d]", i), rule.Ports)
		}
	}
}

// policyPorts: a rule without ports allows all of them, and the API server refuses a number that is no port.
func (c *checker) policyPorts(where string, ports []networkingv1.NetworkPolicyPort) {
	if len(ports) == 0 {
		c.find("%s: names no port, and so allows all", where)
	}
	for _, p := range ports {
		switch {
		case p.Port == nil:
			c.find("%s: a port is missing, and so all are allowed", where)
		case p.Port.Type == intstr.Int && (p.Port.IntVal < 1 || p.Port.IntVal > math.MaxUint16):
			c.find("%s: %d is no port", where, p.Port.IntVal)
		}
	}
}

func (c *checker) ownPods(selector *metav1.LabelSelector, pods corev1.PodTemplateSpec) {
	if !selects(selector, pods.Labels) {
		c.find("selector: does not match the pods' own labels")
	}
	c.pod(pods.Spec)
}

func (c *checker) choosesPods(selector *metav1.LabelSelector) {
	if len(c.podsOf(selector)) == 0 {
		c.find("selector: no pods of the bundle in namespace %s match it", c.at.Namespace())
	}
}

// podsOf are the pods of the bundle that a selector of the object's namespace chooses.
func (c *checker) podsOf(selector *metav1.LabelSelector) []corev1.PodTemplateSpec {
	var chosen []corev1.PodTemplateSpec
	for _, t := range c.typed {
		var pods corev1.PodTemplateSpec
		switch v := t.value.(type) {
		case *appsv1.Deployment:
			pods = v.Spec.Template
		case *appsv1.DaemonSet:
			pods = v.Spec.Template
		case *batchv1.CronJob:
			pods = v.Spec.JobTemplate.Spec.Template
		default:
			continue
		}
		if t.Namespace() == c.at.Namespace() && selects(selector, pods.Labels) {
			chosen = append(chosen, pods)
		}
	}
	return chosen
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(set))
}

func (c *checker) pod(pod corev1.PodSpec) {
	if !c.has("ServiceAccount", c.at.Namespace(), pod.ServiceAccountName) {
		c.find("serviceAccountName: there is no ServiceAccount %s", pod.ServiceAccountName)
	}
	for _, s := range pod.ImagePullSecrets {
		c.secret("imagePullSecrets", s.Name)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		where := "volume " + v.Name
		switch {
		case v.Secret != nil:
			c.secret(where, v.Secret.SecretName)
		case v.ConfigMap != nil:
			data := c.configMapData(where, v.ConfigMap.Name)
			for _, item := range v.ConfigMap.Items {
				c.key(where, v.ConfigMap.Name, item.Key, data)
			}
		case v.Projected != nil:
			c.projected(where, v.Projected.Sources)
		case v.EmptyDir == nil && v.HostPath == nil:
			c.find("%s: want a Secret, ConfigMap, emptyDir or hostPath", where)
		}
	}
	values := map[string]map[string]string{}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		values[container.Name] = c.container(container, volumes)
	}
	c.podPorts(pod, values)
}

// apiCA is the ConfigMap with the API server's CA that Kubernetes puts into every namespace.
const apiCA = "kube-root-ca.crt"

// projected: what Kubernetes itself would mount for the API server, or Secrets, and nothing else.
func (c *checker) projected(where string, sources []corev1.VolumeProjection) {
	for _, s := range sources {
		switch {
		case s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == "":
		case s.ConfigMap != nil && s.ConfigMap.Name == apiCA:
		case s.DownwardAPI != nil:
		case s.Secret != nil:
			c.secret(where, s.Secret.Name)
		default:
			c.find("%s: want the pod's token, a Secret, ConfigMap %s or the downward API", where, apiCA)
		}
	}
}

// container checks one container, and gives the values of its environment variables as far as the bundle has them.
func (c *checker) container(container corev1.Container, volumes map[string]bool) map[string]string {
	where := "container " + container.Name
	if container.Image == "" {
		c.find("%s: has no image: a patch with a misspelt name adds such a container; correct the name in the patch", where)
	} else if first, _, _ := strings.Cut(container.Image, "/"); !strings.ContainsAny(first, ".:") || !strings.ContainsAny(container.Image[len(first):], ":@") {
		c.find("%s: image %q is not REGISTRY/REPOSITORY with a tag or digest", where, container.Image)
	}
	for _, m := range container.VolumeMounts {
		if !volumes[m.Name] {
			c.find("%s: mounts volume %s, which the pod does not have", where, m.Name)
		}
		if m.SubPath != "" || m.SubPathExpr != "" {
			c.find("%s: mounts volume %s by a subPath, which would never see it change; mount the directory", where, m.Name)
		}
	}
	env := c.environment(where, container)
	c.variables(where, container, env)
	c.arguments(where, container, env)
	return env
}

// environment gives the variables of a container. A value that the bundle does not have, of the pod for example, is $(NAME).
func (c *checker) environment(where string, container corev1.Container) map[string]string {
	env := map[string]string{}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef == nil {
			c.find("%s: envFrom: want a ConfigMap", where)
			continue
		}
		for key, value := range c.configMapData(where, from.ConfigMapRef.Name) {
			env[from.Prefix+key] = value
		}
	}
	for _, e := range container.Env {
		env[e.Name] = expand(e.Value, env)
		if e.ValueFrom != nil {
			env[e.Name] = "$(" + e.Name + ")"
		}
		if ref := e.ValueFrom; ref != nil && ref.ConfigMapKeyRef != nil {
			data := c.configMapData(where, ref.ConfigMapKeyRef.Name)
			c.key(where, ref.ConfigMapKeyRef.Name, ref.ConfigMapKeyRef.Key, data)
			env[e.Name] = data[ref.ConfigMapKeyRef.Key]
		} else if ref != nil && ref.SecretKeyRef != nil {
			c.find("%s: env %s: other processes of the node can read a secret in the environment; mount it as a volume", where, e.Name)
		}
	}
	return env
}

// variable matches $(NAME); a second $ escapes it.
var variable = regexp.MustCompile(`(\$?)\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)`)

func (c *checker) variables(where string, container corev1.Container, env map[string]string) {
	texts := slices.Concat(container.Command, container.Args)
	for _, e := range container.Env {
		texts = append(texts, e.Value)
	}
	missing := map[string]bool{}
	for _, text := range texts {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if _, given := env[m[2]]; m[1] == "" && !given {
				missing[m[2]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		c.find("%s: $(%s) is used, but neither env nor envFrom gives it", where, name)
	}
}

// secret checks that the README names a Secret: no bundle holds one, so people must create it.
func (c *checker) secret(where, name string) {
	if !c.stated(name) {
		c.find("%s: Secret %s is not named by the bundle's README", where, name)
	}
}

func (c *checker) configMapData(where, name string) map[string]string {
	m, _ := c.byID[id("ConfigMap", c.at.Namespace(), name)].(*corev1.ConfigMap)
	switch {
	case m != nil && m.Labels[injectedCA] == "true":
		return map[string]string{injectedCAKey: ""}
	case m != nil:
		return m.Data
	case !c.stated(name):
		c.find("%s: there is no ConfigMap %s, and the bundle's README does not name it", where, name)
	}
	return nil
}

// OpenShift's network operator fills a ConfigMap that has this label.
const (
	injectedCA    = "config.openshift.io/inject-trusted-cabundle"
	injectedCAKey = "ca-bundle.crt"
)

func (c *checker) key(where, configMap, key string, data map[string]string) {
	if data == nil { // not in the bundle: somebody else creates it
		return
	}
	if _, there := data[key]; !there {
		c.find("%s: ConfigMap %s has no key %s", where, configMap, key)
	}
}
