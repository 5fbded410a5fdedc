//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// hurry divides the `for` of each alert. A row lasts a minute or two, and an alert waits for up to 15 minutes before it fires.
const hurry = 30

// watch is how long Prometheus reads the targets at least: longer than the longest `for` after the division.
const watch = 35 * time.Second

// prometheus is Debian's Prometheus as a pod, with the rights that a Prometheus of the platform has.
type prometheus struct {
	*cluster
	namespace, account string
	fill               *strings.Replacer
	targets            int // how many there must be
	since              time.Time
}

// prometheusNamespace is that of the platform's Prometheus.
func (s setting) prometheusNamespace() string {
	if s.openShift() {
		return "openshift-monitoring"
	}
	return "monitoring"
}

// startPrometheus starts a Prometheus that reads what the monitors of the bundles select, and evaluates their rules.
func (c *cluster) startPrometheus(t *testing.T, s setting, bundles []*pairBundle) *prometheus {
	t.Helper()
	p := &prometheus{cluster: c, namespace: s.prometheusNamespace(), account: "prometheus-k8s"}
	dir := filepath.Join(c.work, "prometheus")
	testenv.Must(t, os.MkdirAll(dir, 0o755))
	manifest := prometheusObjects
	if !s.openShift() { // OpenShift's account has no such right: the bundle gives it what it needs
		manifest += prometheusRights
	}
	p.fill = strings.NewReplacer("NAMESPACE", p.namespace, "ACCOUNT", p.account)
	c.apply(t, p.fill.Replace(manifest))
	c.kubectl(t, "wait", "--namespace="+p.namespace, "--for=create", "serviceaccount/"+p.account, atMost)
	for name, content := range p.configure(t, bundles) {
		testfile.Write(t, filepath.Join(dir, name), content, 0o600)
	}
	c.kubectl(t, "create", "secret", "generic", "prometheus", "--namespace="+p.namespace, "--from-file="+dir)
	c.apply(t, p.fill.Replace(prometheusPod))
	c.kubectl(t, "wait", "--namespace="+p.namespace, "--for=condition=Ready", "pod/prometheus", atMost)
	eventually(t, time.Minute, "every target read", func() error { return p.readsAll(t) })
	p.since = time.Now()
	return p
}

// configure gives the configuration and the files beside it.
func (p *prometheus) configure(t *testing.T, bundles []*pairBundle) map[string]string {
	t.Helper()
	files := &scrapeFiles{files: map[string]string{}}
	var jobs []fields
	for _, b := range bundles {
		for _, namespace := range []string{b.controller, b.node} {
			jobs = append(jobs, p.scrapeJobs(t, namespace, files)...)
			p.writeRules(t, namespace, files)
		}
		p.targets += b.metricsTargets()
	}
	text := testenv.Value(yaml.Marshal(fields{
		"global":     fields{"scrape_interval": "2s", "evaluation_interval": "1s"},
		"rule_files": []string{"/etc/prometheus/rules-*.yaml"}, "scrape_configs": jobs,
	}))(t)
	files.files["prometheus.yml"] = string(text)
	return files.files
}

const prometheusObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE, labels: {network.openshift.io/policy-group: monitoring}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: NAMESPACE}
`

// prometheusRights are those of the documentation of the Prometheus operator.
const prometheusRights = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pairs-prometheus}
rules:
- {apiGroups: [""], resources: [nodes, services, endpoints, pods], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pairs-prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pairs-prometheus}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
`

const prometheusPod = `
apiVersion: v1
kind: Pod
metadata: {name: prometheus, namespace: NAMESPACE}
spec:
  serviceAccountName: ACCOUNT
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: node-az1}
  containers:
  - name: prometheus
    image: cluster-bed/prometheus:1
    imagePullPolicy: Never
    command: [/bin/prometheus, --config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/data]
    readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
    volumeMounts: [{name: config, mountPath: /etc/prometheus}, {name: data, mountPath: /data}]
  volumes: [{name: config, secret: {secretName: prometheus}}, {name: data, emptyDir: {}}]
`

// monitor is a PodMonitor or a ServiceMonitor: what the bundles use of them. An unknown field fails, as the translation would leave it out.
type monitor struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Selector            struct{ MatchLabels map[string]string }
		Endpoints           []endpoint
		PodMetricsEndpoints []endpoint
	}
}

type endpoint struct {
	Port, Path, Scheme, Interval string
	Authorization                *struct {
		Type        string
		Credentials struct{ Name, Key string }
	}
	TLSConfig *struct {
		ServerName string
		CA         struct{ ConfigMap struct{ Name, Key string } }
	}
}

// scrapeFiles are files beside the configuration.
type scrapeFiles struct{ files map[string]string }

func (s *scrapeFiles) add(name, content string) (path string) {
	s.files[name] = content
	return "/etc/prometheus/" + name
}

// scrapeJobs translates the monitors of a namespace into a configuration of Prometheus. It stands for the Prometheus operator. Debian's Prometheus has
// no discovery of Kubernetes. So the targets are those that its account finds in the moment. They have the labels of the operator.
func (p *prometheus) scrapeJobs(t *testing.T, namespace string, files *scrapeFiles) []fields {
	t.Helper()
	var list struct{ Items []monitor }
	p.read(t, &list, "get", "podmonitors,servicemonitors", "--namespace="+namespace)
	if len(list.Items) == 0 {
		t.Errorf("namespace %s has no PodMonitor and no ServiceMonitor", namespace)
	}
	var jobs []fields
	for _, m := range list.Items {
		for i, e := range append(m.Spec.Endpoints, m.Spec.PodMetricsEndpoints...) {
			job := fields{"job_name": fmt.Sprintf("%s/%s/%s/%d", m.Kind, namespace, m.Metadata.Name, i), "static_configs": p.discover(t, m, e.Port)}
			if e.Scheme != "" {
				job["scheme"] = e.Scheme
			}
			if e.Path != "" {
				job["metrics_path"] = e.Path
			}
			if a := e.Authorization; a != nil {
				token := p.secretKey(t, namespace, a.Credentials.Name, a.Credentials.Key)
				job["authorization"] = fields{"type": a.Type, "credentials_file": files.add("token-"+namespace, token)}
			}
			if x := e.TLSConfig; x != nil {
				ca := p.kubectl(t, "get", "configmap", x.CA.ConfigMap.Name, "--namespace="+namespace, "-o", `jsonpath={.data.`+strings.ReplaceAll(x.CA.ConfigMap.Key, ".", `\.`)+`}`)
				job["tls_config"] = fields{"server_name": x.ServerName, "ca_file": files.add("ca-"+namespace, ca)}
			}
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// read decodes what kubectl gets.
func (p *prometheus) read(t *testing.T, into any, args ...string) {
	t.Helper()
	testenv.Must(t, json.Unmarshal([]byte(p.kubectl(t, append(args, "-o", "json")...)), into))
}

// asAccount is read with the rights of the account of Prometheus.
func (p *prometheus) asAccount(t *testing.T, into any, args ...string) {
	t.Helper()
	p.read(t, into, append(args, "--as=system:serviceaccount:"+p.namespace+":"+p.account)...)
}

// discover finds the targets of one endpoint of a monitor, as Prometheus would: the pods, or the endpoints of the Services.
func (p *prometheus) discover(t *testing.T, m monitor, port string) []fields {
	t.Helper()
	var selector []string
	for name, value := range m.Spec.Selector.MatchLabels {
		selector = append(selector, name+"="+value)
	}
	where := []string{"--namespace=" + m.Metadata.Namespace, "--selector=" + strings.Join(selector, ",")}
	targets := []fields{}
	add := func(address string, number int, labels map[string]string) {
		labels["namespace"], labels["endpoint"], labels["job"] = m.Metadata.Namespace, port, m.Metadata.Namespace+"/"+m.Metadata.Name
		targets = append(targets, fields{"targets": []string{fmt.Sprintf("%s:%d", address, number)}, "labels": labels})
	}
	if m.Kind == "PodMonitor" {
		var pods podList
		p.asAccount(t, &pods, append([]string{"get", "pods"}, where...)...)
		for _, pod := range pods.Items {
			for _, c := range pod.Spec.Containers {
				for _, named := range c.Ports {
					if named.Name == port {
						add(pod.Status.PodIP, named.ContainerPort, map[string]string{"pod": pod.Metadata.Name, "container": c.Name})
					}
				}
			}
		}
		return targets
	}
	var services struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	p.asAccount(t, &services, append([]string{"get", "services"}, where...)...)
	for _, service := range services.Items {
		var found struct {
			Subsets []struct {
				Ports []struct {
					Name string
					Port int
				}
				Addresses []struct {
					IP        string
					TargetRef struct{ Name string }
				}
			}
		}
		p.asAccount(t, &found, "get", "endpoints", service.Metadata.Name, "--namespace="+m.Metadata.Namespace)
		for _, subset := range found.Subsets {
			for _, named := range subset.Ports {
				if named.Name != port {
					continue
				}
				for _, a := range subset.Addresses {
					add(a.IP, named.Port, map[string]string{"pod": a.TargetRef.Name, "service": service.Metadata.Name})
				}
			}
		}
	}
	return targets
}

// podList is what Prometheus needs of pods.
type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct {
			Containers []struct {
				Name  string
				Ports []struct {
					Name          string
					ContainerPort int
				}
			}
		}
		Status struct{ PodIP string }
	}
}

func (c *cluster) secretKey(t *testing.T, namespace, name, key string) string {
	t.Helper()
	return c.kubectl(t, "get", "secret", name, "--namespace="+namespace, "-o", fmt.Sprintf(`go-template={{index .data %q | base64decode}}`, key))
}

var forLine = regexp.MustCompile(`^(\d+)m$`)

// writeRules takes the rules of a namespace, each with its `for` divided by hurry.
func (p *prometheus) writeRules(t *testing.T, namespace string, files *scrapeFiles) {
	t.Helper()
	type group struct {
		Name  string   `json:"name"`
		Rules []fields `json:"rules"`
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Groups []group }
		}
	}
	testenv.Must(t, json.Unmarshal([]byte(p.kubectl(t, "get", "prometheusrules", "--namespace="+namespace, "-o", "json")), &list))
	if len(list.Items) == 0 {
		t.Errorf("namespace %s has no PrometheusRule", namespace)
	}
	for _, r := range list.Items {
		for _, g := range r.Spec.Groups {
			for _, rule := range g.Rules {
				written, _ := rule["for"].(string)
				if written == "" {
					continue
				}
				minutes, err := time.ParseDuration(written)
				if err != nil || !forLine.MatchString(written) {
					t.Fatalf("the alert %v has for: %q; want minutes", rule["alert"], written)
				}
				rule["for"] = fmt.Sprintf("%dms", (minutes / hurry).Milliseconds())
			}
		}
		text := testenv.Value(yaml.Marshal(fields{"groups": r.Spec.Groups}))(t)
		files.add(fmt.Sprintf("rules-%s-%s.yaml", namespace, r.Metadata.Name), string(text))
	}
}

// metricsTargets are those of one bundle: two pods of the controller with an endpoint for each container, and one of each node.
func (b *pairBundle) metricsTargets() int {
	containers := 4
	if b.setting["snapshots"] != "none" {
		containers++
	}
	return 2*containers + len(nodes)
}

// ask calls the API of Prometheus.
func (p *prometheus) ask(t *testing.T, path string, answer any) error {
	t.Helper()
	out, _, err := p.try(t.Context(), "", "kubectl", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/prometheus:9090/proxy/api/v1/%s", p.namespace, path))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), answer)
}

// readsAll fails unless Prometheus reads every target, and has as many as there must be.
func (p *prometheus) readsAll(t *testing.T) error {
	t.Helper()
	var answer struct {
		Data struct {
			ActiveTargets []struct {
				Labels                       map[string]string
				Health, LastError, ScrapeURL string
			}
		}
	}
	if err := p.ask(t, "targets?state=active", &answer); err != nil {
		return err
	}
	var down []string
	for _, target := range answer.Data.ActiveTargets {
		if target.Health != "up" {
			down = append(down, fmt.Sprintf("%s of %s is %s: %s", target.ScrapeURL, target.Labels["pod"], target.Health, target.LastError))
		}
	}
	if n := len(answer.Data.ActiveTargets); n != p.targets || len(down) > 0 {
		return fmt.Errorf("it has %d targets, want %d; not up:\n%s", n, p.targets, strings.Join(down, "\n"))
	}
	return nil
}

// check fails if a target is not read, a rule has an error, or an alert has fired since Prometheus read every target.
func (p *prometheus) check(t *testing.T, bundles []*pairBundle) {
	t.Helper()
	// The pod of a drained node is new, and its next scrape comes within the interval.
	eventually(t, time.Minute, "every target read again", func() error { return p.readsAll(t) })
	if wait := watch - time.Since(p.since); wait > 0 {
		holds(t, wait, "every target read", func() error { return p.readsAll(t) })
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	testenv.Must(t, p.ask(t, "rules", &rules))
	evaluated := 0
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			evaluated++
			if r.Health != "ok" {
				t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if evaluated < 20*len(bundles) {
		t.Errorf("Prometheus evaluates %d rules of %d bundles; want at least 20 of each", evaluated, len(bundles))
	}
	var fired struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	since := time.Since(p.since).Milliseconds()
	testenv.Must(t, p.ask(t, "query?query="+url.QueryEscape(fmt.Sprintf(`max_over_time(ALERTS{alertstate="firing"}[%dms])`, since)), &fired))
	var names []string
	for _, r := range fired.Data.Result {
		names = append(names, fmt.Sprint(r.Metric))
	}
	slices.Sort(names)
	for _, name := range names {
		t.Errorf("an alert has fired: %s", name)
	}
}

// remove deletes Prometheus and its namespace.
func (p *prometheus) remove(t *testing.T) {
	t.Helper()
	p.kubectl(t, "delete", "namespace", p.namespace, atMost)
	p.kubectl(t, "delete", "clusterrole/pairs-prometheus", "clusterrolebinding/pairs-prometheus", "--ignore-not-found")
}
