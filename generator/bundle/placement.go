package bundle

import (
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func strategyValues(d plan.Decision[v1alpha1.UpdateStrategy]) object {
	s := d.Value
	if s == (v1alpha1.UpdateStrategy{}) {
		return nil
	}
	values := object{"type": decidedField(d, "type", s.Type)}
	rolling := object{}
	for key, value := range map[string]v1alpha1.IntOrPercent{"maxUnavailable": s.RollingUpdate.MaxUnavailable, "maxSurge": s.RollingUpdate.MaxSurge} {
		if value != "" {
			rolling[key] = decidedField(d, "rollingUpdate."+key, intOrPercent(value))
		}
	}
	if len(rolling) > 0 {
		values["rollingUpdate"] = rolling
	}
	return values
}

// intOrPercent is a number where it is one: Kubernetes takes a text for a share.
func intOrPercent(v v1alpha1.IntOrPercent) any {
	if n, err := strconv.Atoi(string(v)); err == nil {
		return int64(n)
	}
	return string(v)
}
