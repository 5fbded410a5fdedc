package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// The name of the CronJob, its account and its Secret, and that of its result.
const (
	driftCheckName   = "cinder-csi-drift-check"
	driftCheckStatus = driftCheckName + "-status" // what the CronJob writes
)

// checksDrift is whether the plane has the CronJob: it is beside the controller, whose proxy and certificates it needs.
func (p *plane) checksDrift() bool { return p.controller && p.r.DriftCheck.Value.Schedule != "" }

// driftCheckChart are the values of the drift check.
func (p *plane) driftCheckChart() object {
	d := p.r.DriftCheck
	if !p.checksDrift() {
		return object{"schedule": decidedField(d, "schedule", "")}
	}
	config, decisions, err := p.r.DriftCheckFiles()
	if err != nil {
		panic(err) // plan.Decide has made them before, and a plan.yaml holds nothing that is no YAML
	}
	c := p.r.Credentials
	var all []Ref // the plan holds every decision
	for _, d := range p.r.Document(nil).Decisions {
		all = append(all, Ref{Decision: d.ID})
	}
	return object{
		"schedule": decidedField(d, "schedule", d.Value.Schedule), "cloud": decidedField(c, "cloud", c.Value.Cloud), "region": constant(p.r.Cloud.Region),
		"distribution": valueOf(config, refOf(d), refOf(p.r.ControllerNamespace), refOf(p.r.NodeNamespace), refOf(c)), "plan": valueOf(decisions, all...),
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
	w.line("%s. With the credential in `reader.yaml`:\n", docs(r, "the generator", pages.RulesOfTheGenerator))
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
	w.line("kubectl get jobs --namespace %s --selector app.kubernetes.io/component=drift-check", ns)
	w.line("kubectl logs --namespace %s --selector app=%s --tail=-1 --prefix", ns, driftCheckName)
	w.line("```\n")
	w.line("%s says what to do then, and how an alert reports a failed run.", docs(r, "How to check for drift", pages.CheckForDrift))
}
