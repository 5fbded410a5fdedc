package bundle

// poolValues are the pools as the chart has them.
func (p *plane) poolValues() list {
	var all list
	for _, d := range p.r.NodePools {
		pool := d.Value
		values := object{"name": decidedField(d, "", pool.Name), "nodeSelector": decidedField(d, "nodeSelector", pool.NodeSelector)}
		values.addIf(pool.Tolerations != nil, "tolerations", decidedField(d, "tolerations", pool.Tolerations))
		values.addIf(pool.KubeletDir != "", "kubeletDir", decidedField(d, "kubeletDir", pool.KubeletDir))
		if pool.VolumeAttachLimit != nil {
			values["volumeAttachLimit"] = decidedField(d, "volumeAttachLimit", *pool.VolumeAttachLimit)
		}
		all = append(all, values)
	}
	return all
}
