package plan

// identify gives every decision its id. A decision is made without one, so that no two places can disagree about it.
func (r *Result) identify() {
	r.OpenShift.ID, r.Hosted.ID, r.Adopted.ID = IDOpenShift, IDHosted, IDAdopted
	r.Driver.ID, r.TopologyKey.ID, r.LogLevel.ID, r.PVCAnnotations.ID = IDDriverName, IDTopologyKey, IDLogLevel, IDPVCAnnotations
	r.CSIDriver.ID = IDCSIDriver
	r.StartupTaint.ID, r.DrainHook.ID = IDStartupTaint, IDDrainHook
	r.LogFormat.ID, r.KubeletDir.ID, r.Capacity.ID, r.Requests.ID, r.DrainTimeout.ID = IDLogFormat, IDKubeletDir, IDCapacity, IDRequests, IDDrainTimeout
	r.ProtectOthers.ID, r.VolumeMetadata.ID, r.ServerMetadata.ID = IDProtectOthers, IDVolumeMetadata, IDServerMetadata
	r.SELinux.ID = IDSELinux
	r.Metadata.ID = IDMetadata
	r.ControllerNamespace.ID, r.NodeNamespace.ID = IDControllerNamespace, IDNodeNamespace
	r.ClusterID.ID, r.Credentials.ID, r.CABundle.ID, r.KubeconfigSecret.ID = IDClusterID, IDCredentials, IDCABundle, IDKubeconfigSecret
	r.CredentialsRequest.ID, r.MetricsTLS.ID, r.PlatformMonitoring.ID = IDCredentialsRequest, IDMetricsTLS, IDPlatformMonitoring
	r.CASource.ID, r.TrustedCA.ID, r.Monitoring.ID = IDCASource, IDTrustedCA, IDMonitoring
	r.Alerts.ID, r.Dashboards.ID = IDAlerts, IDDashboards
	r.GuestAccess.ID = IDGuestAccess
	r.DriftCheck.ID = IDDriftCheck
	r.Leases.ID, r.Topology.ID, r.ZoneMap.ID = IDLeases, IDTopology, IDZoneMap
	r.BindingMode.ID, r.ReclaimPolicy.ID, r.Expansion.ID = IDBindingMode, IDReclaimPolicy, IDExpansion
	for i := range r.StorageClasses {
		r.StorageClasses[i].ID = ClassID + r.StorageClasses[i].Value.Name
	}
	for i := range r.AttributesClasses {
		r.AttributesClasses[i].ID = AttributesClassID + r.AttributesClasses[i].Value.Name
	}
	r.BackupClass.ID = IDBackupClass
	r.DefaultClass.ID, r.SnapshotClass.ID, r.CloudConf.ID = IDDefaultClass, IDSnapshotClass, IDCloudConf
	r.AttachLimit.ID, r.LimitRefresh.ID, r.NetworkPolicy.ID = IDAttachLimit, IDLimitRefresh, IDNetworkPolicy
	identifyImages(ImageID, r.Images)
	r.Controller.identify(IDController)
	r.Node.identify(IDNode)
}

func (w *Workload) identify(role string) {
	w.Replicas.ID, w.PriorityClass.ID, w.NodeSelector.ID = role+".replicas", role+".priorityClass", role+".nodeSelector"
	w.Tolerations.ID, w.PodLabels.ID, w.ImagePullSecrets.ID = role+".tolerations", role+".podLabels", role+".imagePullSecrets"
	w.RunAsUser.ID, w.Proxy.ID, w.Resources.ID = role+".runAsUser", role+".proxy", role+".resources"
	w.PullPolicies.ID, w.Affinity.ID, w.Spread.ID = role+".imagePullPolicy", role+".affinity", role+".topologySpreadConstraints"
	w.PodAnnotations.ID, w.Env.ID, w.ExtraArgs.ID, w.UpdateStrategy.ID = role+".podAnnotations", role+".env", role+".extraArgs", role+".updateStrategy"
	identifyImages(role+"."+ImageID, w.Images)
}

func identifyImages(prefix string, images map[string]Decision[string]) {
	for name, d := range images {
		d.ID = prefix + name
		images[name] = d
	}
}
