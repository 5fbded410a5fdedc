package bundle

import (
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// setting is the value of a row of the table, with its decision and the field of that. It is nil where an older version made the plan.
func (p *plane) setting(s v1alpha1.Setting) (plan.Decision[plan.Setting], string, any) {
	id, field := s.ID()
	d := p.r.Setting(id)
	if field == "" {
		return d, field, d.Value.Value
	}
	fields, _ := d.Value.Value.(map[string]any)
	return d, field, fields[field]
}

// ownSettings are the variables that a person adds, and further flags of the driver.
func ownSettings(w plan.Workload) object {
	settings := object{}
	for name, value := range w.Env.Value {
		settings[name] = decidedField(w.Env, name, value)
	}
	if len(w.ExtraArgs.Value) > 0 {
		settings[config.ExtraArgsVariable] = decidedField(w.ExtraArgs, "", strings.Join(w.ExtraArgs.Value, "\n"))
	}
	return settings
}
