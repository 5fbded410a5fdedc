package plan

import (
	"cmp"
	"fmt"
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
	r.each(false, func(id string, e entry) {
		if !e.unsaid() {
			d := e.document()
			d.Value = r.shown(id, d.Value)
			p.Decisions = append(p.Decisions, d)
		}
	})
	return p
}

// Values are the values of all decisions by id, as a document has them.
func (r Result) Values() map[string]any {
	all := map[string]any{}
	r.each(false, func(id string, e entry) { all[id] = r.shown(id, e.document().Value) })
	return all
}

// shown is the value of a decision in a document, which has the certificates in its configuration.
func (r *Result) shown(id string, value any) any {
	if id == IDs.CABundle.ID {
		return certificateCount(r.CABundle.Value)
	}
	return value
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
	r, rest, err := Restore(p)
	switch {
	case err != nil:
		return Result{}, err
	case len(rest) > 0:
		return Result{}, fmt.Errorf("plan.yaml has a decision %q that this version does not know; generator %q made it", rest[0].ID, p.Generator)
	}
	return r, nil
}

// Restore is FromDocument for a document of any version. The rest are the decisions that this version does not know, or whose value is not
// of their type. The error is about the first of the latter.
func Restore(p v1alpha1.Plan) (r Result, rest []v1alpha1.Decision, unreadable error) {
	r = Result{
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
	r.each(true, func(id string, e entry) {
		d, there := decisions[id]
		if !there {
			return
		}
		if id == IDs.CABundle.ID {
			d.Value = p.Config.Credentials.CABundle
		}
		if err := e.restore(d); err != nil {
			unreadable = cmp.Or(unreadable, fmt.Errorf("plan.yaml: decision %q: %w", id, err))
			return
		}
		delete(decisions, id)
	})
	for _, d := range p.Decisions {
		if _, left := decisions[d.ID]; left {
			rest = append(rest, d)
		}
	}
	for i := range r.StorageClasses {
		c := &r.StorageClasses[i].Value
		c.Default = r.DefaultClass.Value == c.Name
	}
	return r, rest, unreadable
}

// DecisionOf finds a decision in a document by its id.
func DecisionOf(p v1alpha1.Plan, id string) (v1alpha1.Decision, bool) {
	i := slices.IndexFunc(p.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })
	if i < 0 {
		return v1alpha1.Decision{}, false
	}
	return p.Decisions[i], true
}
