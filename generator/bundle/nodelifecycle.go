package bundle

import (
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// tolerations are those of some pods, and that of the start-up taint where the driver removes it. The pods of the nodes must start before the taint is
// gone. So must the controller, because on a new cluster every node has the taint. The chart adds the same toleration.
func (p *plane) tolerations(values []v1alpha1.Toleration, own node) node {
	if !p.r.StartupTaint.Value {
		if values != nil && len(values) == 0 {
			return also(own, refOf(p.r.StartupTaint)) // it would not be empty with the taint
		}
		return own
	}
	if slices.ContainsFunc(values, toleratesAll) {
		return own
	}
	key := also(part(p.r.StartupTaint, "", contract.StartupTaint(p.r.Driver.Value)), refOf(p.r.Driver))
	all, _ := own.(list)
	return append(slices.Clone(all), object{"key": key, "operator": part(p.r.StartupTaint, "", "Exists")})
}

func toleratesAll(t v1alpha1.Toleration) bool {
	return t.Key == "" && t.Operator == "Exists" && t.Effect == ""
}

// nodeContainers are the containers of the nodes in their order, and those that start before them and end after them.
func (p *plane) nodeContainers() (containers, around []string) {
	if !p.r.DrainHook.Value {
		return nodeContainers, nil
	}
	return []string{"driver", "livenessprobe"}, []string{"registrar"}
}
