package bundle

import (
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// The name of the CronJob, its account, its Secret and the ConfigMap that it reads.
const (
	driftCheckName      = "cinder-csi-drift-check"
	driftCheckComponent = "drift-check"
	driftCheckSettings  = driftCheckName + "-settings"
	driftCheckStatus    = driftCheckName + "-status" // what the CronJob writes
)

// managementAccess is the label with which HyperShift's NetworkPolicies let a pod of a hosted control plane reach the API server of the management
// cluster. There the drift check writes its result.
const managementAccess = "hypershift.openshift.io/need-management-kas-access"

// checksDrift is whether the plane has the CronJob: it is beside the controller, whose proxy and certificates it needs.
func (p *plane) checksDrift() bool { return p.controller && p.r.DriftCheck.Value.Schedule != "" }

// driftCheckFiles are the configuration and the decisions that the CronJob reads. The second one holds every decision.
func (p *plane) driftCheckFiles() object {
	config, decisions, err := p.r.DriftCheckFiles()
	if err != nil {
		panic(err) // plan.Decide has made them before, and a plan.yaml holds nothing that is no YAML
	}
	settled := []Ref{refOf(p.r.DriftCheck), refOf(p.r.ControllerNamespace), refOf(p.r.NodeNamespace), refOf(p.r.Credentials)}
	var all []Ref
	for _, d := range p.r.Document(nil).Decisions {
		all = append(all, Ref{Decision: d.ID})
	}
	return object{"distribution.yaml": from(config, settled...), "plan.yaml": from(decisions, all...)}
}

// driftCheckValues are the variables of the CronJob.
func (p *plane) driftCheckValues() (cloud, region, target node) {
	c := p.r.Credentials
	return part(c, "cloud", c.Value.Cloud), fixed(p.r.Cloud.Region), fixed(string(p.r.Target))
}

func (p *plane) driftCheckConfigMaps() []node {
	cloud, region, target := p.driftCheckValues()
	configMap := func(name string, data object) node {
		return under(object{
			"apiVersion": fixed("v1"), "kind": fixed("ConfigMap"),
			"metadata": object{"name": fixed(name), "namespace": whole(p.controllerNS), "labels": fixed(labels(driftCheckComponent))},
			"data":     data,
		}, refOf(p.r.DriftCheck))
	}
	return []node{
		configMap(driftCheckName, p.driftCheckFiles()),
		configMap(driftCheckSettings, object{"CLOUD": cloud, "REGION": region, "TARGET": target}),
	}
}

// driftCheckSpec is the patch of the CronJob with the values of the plan.
func (p *plane) driftCheckSpec() object {
	d, w := p.r.DriftCheck, p.r.Controller
	container := object{"name": fixed("generator")}
	if d.Value.PullPolicy != "" {
		container["imagePullPolicy"] = part(d, "imagePullPolicy", d.Value.PullPolicy)
	}
	if env := proxyEnv(w.Proxy); len(env) > 0 {
		container["env"] = append(env, p.driftCheckEnv()...)
	}
	pod := object{"containers": list{container}}
	if p.hasCA() {
		pod["volumes"] = append(list{p.caVolume()}, named("plan", "cloud", "api-access")...)
	}
	if user := p.driftCheckUser(); user != nil {
		user = also(user, refOf(d))
		pod["securityContext"] = object{"runAsUser": user, "runAsGroup": user, "fsGroup": user}
	}
	if secrets := pullSecrets(w); secrets != nil {
		pod["imagePullSecrets"] = secrets
	}
	p.placeDriftCheck(pod)
	template, labels := object{"spec": pod}, object{}
	for key, value := range w.PodLabels.Value {
		if key != "app" && key != managementAccess && !strings.HasPrefix(key, "app.kubernetes.io/") { // the pod has its own
			labels[key] = part(w.PodLabels, key, value)
		}
	}
	if p.hosted() {
		labels[managementAccess] = part(p.r.Hosted, "", "true")
	}
	if len(labels) > 0 {
		template["metadata"] = object{"labels": labels}
	}
	return object{
		"schedule":    part(d, "schedule", d.Value.Schedule),
		"jobTemplate": object{"spec": object{"template": template}},
	}
}

// driftCheckUser is the controller's. It is nil where OpenShift's security context constraints choose.
func (p *plane) driftCheckUser() node {
	switch user := p.r.Controller.RunAsUser; {
	case user.Value != nil:
		return whole(user)
	case p.openShift():
		return nil
	}
	return part(p.r.OpenShift, "", 65532)
}

// placeDriftCheck puts the pod where those of the controller can run, which reach the cloud. Rules about other pods are for the replicas of the
// controller, except HyperShift's.
func (p *plane) placeDriftCheck(pod object) {
	w := p.r.Controller
	pod["priorityClassName"], pod["tolerations"] = whole(w.PriorityClass), p.tolerations(w.Tolerations.Value, whole(w.Tolerations))
	if len(w.NodeSelector.Value) > 0 {
		pod["nodeSelector"] = whole(w.NodeSelector)
	}
	if p.hosted() && w.Affinity.Value == nil {
		pod["affinity"] = under(p.hostedAffinity(), refOf(p.r.Hosted))
	}
	if w.Affinity.Value != nil && w.Affinity.Value.NodeAffinity != nil {
		pod["affinity"] = object{"nodeAffinity": objectOf(whole(w.Affinity))["nodeAffinity"]}
	}
}

// driftCheckEnv names the variables that the components give the container. A merge moves what it names to the front, so it names all.
func (p *plane) driftCheckEnv() list {
	if p.hasCA() {
		return named("OS_CACERT", "OS_CLIENT_CONFIG_FILE")
	}
	return named("OS_CLIENT_CONFIG_FILE")
}

// driftCheckChart are the values of the drift check.
func (p *plane) driftCheckChart() object {
	d := p.r.DriftCheck
	if !p.checksDrift() {
		return object{"schedule": part(d, "schedule", "")}
	}
	files := p.driftCheckFiles()
	cloud, region, _ := p.driftCheckValues()
	return object{
		"schedule": part(d, "schedule", d.Value.Schedule), "cloud": cloud, "region": region,
		"distribution": files["distribution.yaml"], "plan": files["plan.yaml"],
	}
}

// driftCheck says which Secret the CronJob reads, and how a person sees what it found.
func (w *text) driftCheck(r plan.Result) {
	if r.DriftCheck.Value.Schedule == "" {
		return
	}
	ns := shell.Word(r.ControllerNamespace.Value)
	w.line("\n## The drift check\n")
	w.line("The CronJob `%s` compares the decisions above with those that the cloud gives, at `%s`. It reads the Secret `%s`:", driftCheckName, r.DriftCheck.Value.Schedule, driftCheckName)
	w.line("a `clouds.yaml` with an entry `%s`, for the same project. A credential that can only read is enough: the role `reader`, and the access rules of", r.Credentials.Value.Cloud)
	w.line("%s. With the credential in `reader.yaml`:\n", docs(r, "the generator", "docs/reference/access-rules.md#rules-of-the-generator"))
	w.line("```sh")
	w.line("kubectl create secret generic %s --namespace %s --from-file=clouds.yaml=reader.yaml", driftCheckName, ns)
	w.line("```\n")
	if r.CASource.Value.ConfigMap == "" {
		w.line("If a private CA has signed the certificates of OpenStack, add `--from-file=cacert=ca.pem` with its certificates, and give the entry in")
		w.line("`reader.yaml` the line `cacert: %s/cacert`.\n", plan.CloudsDir)
	}
	w.line("The last result is in the ConfigMap `%s`, which the bundle leaves without data:\n", driftCheckStatus)
	w.line("```sh")
	w.line("kubectl get configmap %s --namespace %s -o jsonpath='{.data.result}{\"\\n\"}{.data.differences}'", driftCheckStatus, ns)
	w.line("```\n")
	w.line("A run fails if it finds a difference (exit code 2) or cannot compare (1 or 64). This shows the runs, then what they printed:\n")
	w.line("```sh")
	w.line("kubectl get jobs --namespace %s --selector %s=%s", ns, componentLabel, driftCheckComponent)
	w.line("kubectl logs --namespace %s --selector app=%s --tail=-1 --prefix", ns, driftCheckName)
	w.line("```\n")
	w.line("%s says what to do then, and how an alert reports a failed run.", docs(r, "How to check for drift", "docs/how-to/check-for-drift.md"))
}

// pullSecrets are the references of a role's pull secrets; nil: none.
func pullSecrets(w plan.Workload) list {
	var refs list
	for _, name := range w.ImagePullSecrets.Value {
		refs = append(refs, object{"name": part(w.ImagePullSecrets, "", name)})
	}
	return refs
}

// caVolume mounts the certificates of OpenStack's endpoints.
func (p *plane) caVolume() node {
	ca := p.r.CASource
	files := list{object{"key": part(ca, "key", ca.Value.Key), "path": fixed("ca.pem")}}
	return object{"name": fixed("ca"), "configMap": object{"name": part(ca, "configMap", ca.Value.ConfigMap), "items": files}}
}
