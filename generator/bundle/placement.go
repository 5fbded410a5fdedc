package bundle

import (
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// affinityPatch replaces the base's affinity: what the configuration leaves out is deleted, because a merge would keep it.
func affinityPatch(d plan.Decision[*v1alpha1.Affinity]) object {
	configured := objectOf(whole(d))
	patch := object{}
	for _, kind := range []string{"nodeAffinity", "podAffinity", "podAntiAffinity"} {
		rules, given := configured[kind].(object)
		if !given {
			patch[kind] = part(d, kind, nil)
			continue
		}
		all := object{}
		for _, key := range []string{"requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"} {
			if all[key] = rules[key]; rules[key] == nil {
				all[key] = part(d, kind+"."+key, nil)
			}
		}
		patch[kind] = all
	}
	return patch
}

// strategyPatch is a configured strategy, which is complete; nil: the base's holds.
func strategyPatch(d plan.Decision[v1alpha1.UpdateStrategy]) object {
	values := strategyValues(d)
	if values != nil && values["rollingUpdate"] == nil {
		values["rollingUpdate"] = part(d, "rollingUpdate", nil)
	}
	return values
}

func strategyValues(d plan.Decision[v1alpha1.UpdateStrategy]) object {
	s := d.Value
	if s == (v1alpha1.UpdateStrategy{}) {
		return nil
	}
	values := object{"type": part(d, "type", s.Type)}
	rolling := object{}
	for key, value := range map[string]v1alpha1.IntOrPercent{"maxUnavailable": s.RollingUpdate.MaxUnavailable, "maxSurge": s.RollingUpdate.MaxSurge} {
		if value != "" {
			rolling[key] = part(d, "rollingUpdate."+key, intOrPercent(value))
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
