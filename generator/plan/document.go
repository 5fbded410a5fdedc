package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

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
	_ = r.each(false, func(id string, e entry) error {
		d := e.document()
		if id == IDs.CABundle.ID {
			d.Value = certificateCount(r.CABundle.Value)
		}
		if !e.unsaid() {
			p.Decisions = append(p.Decisions, d)
		}
		return nil
	})
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
		Settings: noSettings(),
	}
	decisions, ids := map[string]v1alpha1.Decision{}, make([]string, 0, len(p.Decisions))
	for _, d := range p.Decisions {
		decisions[d.ID] = d
		ids = append(ids, d.ID)
	}
	prepare(reflect.ValueOf(&r).Elem(), "", ids)
	r.identify()
	err := r.each(true, func(id string, e entry) error {
		d, there := decisions[id]
		if !there {
			return nil
		}
		delete(decisions, id)
		if id == IDs.CABundle.ID {
			d.Value = p.Config.Credentials.CABundle
		}
		if err := e.restore(d); err != nil {
			return fmt.Errorf("plan.yaml: decision %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if len(decisions) > 0 {
		return Result{}, fmt.Errorf("plan.yaml has a decision %s that this version does not know; generator %s made it", slices.Min(slices.Collect(maps.Keys(decisions))), p.Generator)
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
