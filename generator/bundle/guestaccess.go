package bundle

// guestVolumes are the volumes by which the sidecars of a hosted control plane reach the guest. With a token, the container that renews it has
// the Secret of HyperShift, and a pull policy as the driver, whose image it has.
func (p *plane) guestVolumes(spec object) list {
	access := refOf(p.r.GuestAccess)
	admin := object{"secret": object{"secretName": also(whole(p.r.KubeconfigSecret), access)}}
	if !p.guestToken() {
		return list{merge(admin, object{"name": fixed("hosted-kubeconfig")})}
	}
	if policy := p.r.Controller.PullPolicies.Value["driver"]; policy != "" {
		spec["initContainers"] = list{object{"name": fixed("guest-token"), "imagePullPolicy": also(part(p.r.Controller.PullPolicies, "driver", policy), access)}}
	}
	return append(named("hosted-kubeconfig"), merge(admin, object{"name": fixed("admin-kubeconfig")}))
}
