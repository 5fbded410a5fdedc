package plan

import (
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// driftCheckRole is the role in the name of the image of the drift check.
const driftCheckRole = "driftcheck"

// DriftCheck is the CronJob that compares the decisions of the bundle with those that the cloud gives now; zero: none.
type DriftCheck struct {
	Schedule string `json:"schedule"`
	// PullPolicy of its image; empty: that of the base.
	PullPolicy string `json:"imagePullPolicy,omitempty"`
}

func (d *decider) driftCheck() Decision[DriftCheck] {
	schedule, image := d.spec.DriftCheck.Schedule, d.spec.Images.Generator
	if schedule == "" {
		if image != (v1alpha1.Image{}) {
			d.warn("spec.images.generator: no pod has this image, because spec.driftCheck.schedule is not set")
		}
		return Decision[DriftCheck]{Source: Default}
	}
	return Decision[DriftCheck]{
		Value: DriftCheck{schedule, image.PullPolicy}, Source: FromConfig,
		Reason: "spec.driftCheck.schedule is set; a CronJob compares these decisions with those that the cloud gives now",
	}
}

// maxConfigMap is what the data of a ConfigMap may have in all (Kubernetes API reference, ConfigMap).
const maxConfigMap = 1 << 20

func (d *decider) checkDriftCheckSize(r Result) {
	if r.DriftCheck.Value.Schedule == "" {
		return
	}
	config, decisions, err := r.DriftCheckFiles()
	switch {
	case err != nil:
		d.problem("spec.driftCheck.schedule: the files of the drift check cannot be written: %v", err)
	case len(config)+len(decisions) > maxConfigMap:
		d.problem("spec.driftCheck.schedule: the configuration and the decisions have %d bytes, and a ConfigMap holds at most %d. "+
			"Leave it out, and run generate --check in a pipeline", len(config)+len(decisions), maxConfigMap)
	}
}

// DriftCheckFiles are the configuration and the decisions that the drift check reads, as YAML. From this configuration the cloud of the bundle
// gives the same decisions, whatever metadata.name was. It has every default written out, which changes reasons and sources, so the decisions
// have none. Of the warnings they have those that say that something fails. They do not say the format, because both formats stand for the same objects.
func (r Result) DriftCheckFiles() (config, decisions string, err error) {
	p := r.Document(nil)
	p.Format, p.Warnings, p.Given = "", r.Failures, nil
	for i := range p.Decisions {
		p.Decisions[i].Reason, p.Decisions[i].Source = "", ""
	}
	p.Config.Namespaces = v1alpha1.Namespaces{Controller: r.ControllerNamespace.Value, Node: r.NodeNamespace.Value}
	d := v1alpha1.Distribution{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindDistribution, Spec: p.Config}
	if c := r.Credentials.Value; c.Owner == HyperShift && p.Config.Credentials.SecretName == "" {
		d.Metadata.Name = strings.TrimSuffix(c.SecretName, identitySuffix) // the decision takes it from there
	}
	text, err := v1alpha1.YAML(d)
	if err != nil {
		return "", "", err
	}
	plan, err := v1alpha1.YAML(p)
	return string(text), string(plan), err
}
