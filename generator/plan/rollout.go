package plan

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func (d *decider) checkUpdateStrategy(path, role string, s v1alpha1.UpdateStrategy) {
	const rolling = "RollingUpdate"
	other, workload := "Recreate", "a Deployment"
	if role == v1alpha1.NodeRole {
		other, workload = "OnDelete", "a DaemonSet"
	}
	if s.Type != "" && s.Type != rolling && s.Type != other {
		d.problem("%s.type: %s is none of %s, which has %s and %s", path, s.Type, workload, rolling, other)
		return
	}
	r := s.RollingUpdate
	if s.Type == other && r != (v1alpha1.RollingUpdate{}) {
		d.problem("%s.rollingUpdate: type %s takes none", path, other)
		return
	}
	unavailable := d.share(path+".rollingUpdate.maxUnavailable", r.MaxUnavailable, 1)
	surge := d.share(path+".rollingUpdate.maxSurge", r.MaxSurge, 0)
	switch {
	case role == v1alpha1.NodeRole && surge > 0:
		d.problem("%s.rollingUpdate.maxSurge: two pods of one node cannot share its host ports; leave it out", path)
	case unavailable == 0 && surge == 0:
		d.problem("%s.rollingUpdate: maxUnavailable and maxSurge are both 0, so an update could replace no pod", path)
	}
}

// share is a number of pods or a percentage; other texts are a problem.
func (d *decider) share(path string, v v1alpha1.IntOrPercent, absent int) int {
	if v == "" {
		return absent
	}
	digits, percent := strings.CutSuffix(string(v), "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 || strconv.Itoa(n) != digits {
		d.problem("%s: %q is neither a whole number nor a share such as 10%%", path, string(v))
		return 1
	}
	return n
}

// effectiveStrategy is a configured strategy with what it leaves out, as the base has it.
func effectiveStrategy(role string, s v1alpha1.UpdateStrategy) v1alpha1.UpdateStrategy {
	s.Type = cmp.Or(s.Type, "RollingUpdate")
	if s.Type != "RollingUpdate" {
		return s
	}
	ours := base().roles[role].Strategy.RollingUpdate
	s.RollingUpdate.MaxUnavailable = cmp.Or(s.RollingUpdate.MaxUnavailable, ours.MaxUnavailable)
	s.RollingUpdate.MaxSurge = cmp.Or(s.RollingUpdate.MaxSurge, ours.MaxSurge)
	return s
}
