package switches

// Setting is a key of a Distribution and the values that tests give it, in YAML terms. A test also leaves each key out.
type Setting struct {
	Key    string // below spec
	Values []any
}

type (
	fields = map[string]any
	list   = []any
)

// All are all keys of a Distribution.
var All = []Setting{
	{"kubernetesVersion", list{"1.27", "1.34", "1.37"}},
	{"size", list{"small", "large"}},
	{"openshift.coexistence", list{"adopt", "sideBySide"}},
	{"openshift.controlPlaneTopology", list{"SingleReplica", "External"}},
	{"openshift.clusterNetworks", list{list{"10.128.0.0/14", "172.30.0.0/16"}}},
	{"openshift.monitoring", list{"userWorkload", "platform"}},
	{"namespaces.controller", list{"storage", "kube-system"}},
	{"namespaces.node", list{"storage-node", "kube-system"}},
	{"clusterID", list{`prod: "one"`}},
	{"driver.name", list{"cinder.example.org"}},
	{"driver.logLevel", list{6, 0}},
	{"driver.pvcAnnotations", list{false, true}},
	{"driver.logFormat", list{"json", "text"}},
	{"driver.kubeletDir", list{"/var/lib/k0s/kubelet"}},
	{"driver.capacity", list{true}},
	{"driver.metadata", list{list{"configDrive"}, list{"configDrive", "metadataService"}}},
	{"driver.requestsPerSecond", list{fields{"reads": 20, "writes": 0}}},
	{"driver.drainTimeout", list{"15s"}},
	{"driver.extraArgs.controller", list{list{"--user-agent=a", "--user-agent=b"}}},
	{"driver.extraArgs.node", list{list{"--default-fs-type=xfs"}}},
	{"credentials.request", list{"enabled", "disabled"}},
	{"credentials.secretName", list{"cloud"}},
	{"credentials.key", list{"other.yaml"}},
	{"credentials.cloud", list{"prod"}},
	{"credentials.caBundle", list{fixedCA}},
	{"credentials.caConfigMap", list{"cloud-ca"}},
	{"credentials.caKey", list{"ca.crt"}},
	{"topology.mode", list{"disabled", "enabled"}},
	{"topology.zoneMap", list{fields{"az2": "az 1"}}},
	{"storageClasses.include", list{list{"*"}}},
	{"storageClasses.exclude", list{list{"Fast*"}}},
	{"storageClasses.default", list{"none", "t2"}},
	{"storageClasses.namePrefix", list{"os-"}},
	{"storageClasses.volumeBindingMode", list{"Immediate", "WaitForFirstConsumer"}},
	{"storageClasses.allowVolumeExpansion", list{false, true}},
	{"storageClasses.overrides", list{fields{"standard": fields{
		"volumeBindingMode": "Immediate", "allowVolumeExpansion": false, "reclaimPolicy": "Retain", "fsType": "xfs", "mountOptions": list{"noatime"}, "annotations": fields{"example.org/owner": "storage"},
	}}}},
	{"storageClasses.extra", list{list{fields{"type": "t2", "name": "twin", "reclaimPolicy": "Retain"}}}},
	{"volumeAttachLimit", list{"20"}},
	{"snapshots.enabled", list{false, true}},
	{"snapshots.backup", list{"enabled", "disabled"}},
	{"snapshots.classes", list{fields{"weekly": fields{
		"deletionPolicy": "Retain", "default": true, "parameters": fields{"type": "backup", "incremental": "true"}, "annotations": fields{"example.org/owner": "storage"},
	}, "plain": fields{}}}},
	{"attributesClasses", list{fields{"fast": fields{"type": "t2", "policy": "on-demand", "metadata": fields{"team": "storage"}}}}},
	{"nodePools", list{
		list{fields{"name": "gpu", "nodeSelector": fields{"pool": "gpu"}, "tolerations": list{}, "volumeAttachLimit": 20}},
		list{fields{"name": "k0s", "nodeSelector": fields{"pool": "k0s"}, "kubeletDir": "/var/lib/k0s/kubelet"}, fields{"name": "big", "nodeSelector": fields{"pool": "big"}, "tolerations": list{fields{"key": "big", "operator": "Exists"}}}},
	}},
	{"nodeLifecycle.startupTaint", list{true}},
	{"nodeLifecycle.drainHook", list{true}},
	{"monitoring.kind", list{"PodMonitor", "ServiceMonitor"}},
	{"monitoring.alerts", list{true}},
	{"monitoring.dashboards", list{true}},
	{"monitoring.runbookBase", list{"https://git.example.com/cinder-csi/blob/v1"}},
	{"monitoring.labels", list{fields{"release": "prometheus", "example.org/team": "1e3"}}},
	{"monitoring.nodePorts", list{"auto", 9701}},
	{"monitoring.tls.minVersion", list{"VersionTLS12", "VersionTLS13"}},
	{"monitoring.tls.cipherSuites", list{list{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}},
	{"driftCheck.schedule", list{"0 6 * * *"}},
	{"networkPolicy.openstackCIDRs", list{list{"192.0.2.0/24", "2001:db8::/32"}}},
	{"networkPolicy.apiServerCIDRs", list{list{"198.51.100.0/24"}}},
	{"networkPolicy.apiServerPorts", list{list{16443}, list{443, 7443}}},
	{"networkPolicy.dnsCIDRs", list{list{"169.254.20.10/32"}}},
	{"networkPolicy.metricsNamespaces", list{list{"monitoring"}}},
	{"networkPolicy.enabled", list{true}},
	{"trustedCA", list{true}},
	{"driver.protectOtherClusters", list{"enabled", "strict", "disabled"}},
	{"driver.seLinux", list{"enabled", "disabled"}},
	{"driver.volumeMetadata", list{fields{"team": "storage"}}},
	{"driver.serverMetadata", list{fields{"role": "k8s-node"}}},
	{"driver.userAgent", list{"prod (west)"}},
	{"images.registry", list{"mirror.example:5000"}},
	{"images.driver", list{fields{"registry": "registry.example:5000", "tag": "v9", "pullPolicy": "Always"}, fields{"tag": "v9"}}},
	{"images.provisioner", list{fields{"repository": "mirror/provisioner"}}},
	{"images.attacher", list{fields{"repository": "mirror/attacher"}}},
	{"images.resizer", list{fields{"repository": "mirror/resizer"}}},
	{"images.snapshotter", list{fields{"repository": "mirror/snapshotter"}}},
	{"images.livenessprobe", list{fields{"digest": "sha256:" + digest}}},
	{"images.registrar", list{fields{"registry": "registry.example"}}},
	{"images.rbacproxy", list{fields{"registry": "registry.example", "pullPolicy": "Always"}}},
	{"images.generator", list{fields{"registry": "registry.example", "tag": "v9"}}},
	{"roles.controller.images", list{fields{"attacher": fields{"tag": "v9"}}}},
	{"roles.controller.proxy", list{fields{"http": "http://proxy.example:3128", "https": "http://proxy.example:3128", "noProxy": "10.0.0.0/8,.svc"}}},
	{"roles.controller.nodeSelector", list{fields{"role": "storage"}, fields{}}},
	{"roles.controller.tolerations", list{list{fields{"key": "storage", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60}}, list{}}},
	{"roles.controller.affinity", list{fields{"podAntiAffinity": fields{"requiredDuringSchedulingIgnoredDuringExecution": list{
		fields{"labelSelector": fields{"matchLabels": fields{"app": "cinder-csi-controller"}}, "topologyKey": "kubernetes.io/hostname"},
	}}}}},
	{"roles.controller.topologySpreadConstraints", list{list{fields{
		"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": fields{"matchLabels": fields{"app": "cinder-csi-controller"}},
	}}}},
	{"roles.controller.podLabels", list{fields{"team": "storage"}}},
	{"roles.controller.podAnnotations", list{fields{"example.org/team": "storage"}}},
	{"roles.controller.env", list{fields{"GOMEMLIMIT": "200MiB"}}},
	{"roles.controller.imagePullSecrets", list{list{"pull-a", "pull-b"}}},
	{"roles.controller.priorityClassName", list{"storage"}},
	{"roles.controller.runAsUser", list{1000680000}},
	{"roles.controller.replicas", list{3, 1}},
	{"roles.controller.resources", list{fields{"driver": fields{"requests": fields{"cpu": "100m"}, "limits": fields{"memory": "1Gi"}}}}},
	{"roles.controller.updateStrategy", list{fields{"type": "Recreate"}, fields{"rollingUpdate": fields{"maxSurge": 1, "maxUnavailable": "0%"}}}},
	{"roles.node.images", list{fields{"driver": fields{"tag": "v8"}}}},
	{"roles.node.proxy", list{fields{"noProxy": "169.254.169.254"}}},
	{"roles.node.nodeSelector", list{fields{"kubernetes.io/os": "linux", "storage": "true"}}},
	{"roles.node.tolerations", list{list{}}},
	{"roles.node.affinity", list{fields{"nodeAffinity": fields{"requiredDuringSchedulingIgnoredDuringExecution": fields{"nodeSelectorTerms": list{
		fields{"matchExpressions": list{fields{"key": "storage", "operator": "In", "values": list{"yes"}}}},
	}}}}}},
	{"roles.node.topologySpreadConstraints", nil},
	{"roles.node.podLabels", list{fields{"team": "storage"}}},
	{"roles.node.podAnnotations", list{fields{"example.org/team": "storage"}}},
	{"roles.node.env", list{fields{"GOMEMLIMIT": "100MiB"}}},
	{"roles.node.imagePullSecrets", list{list{"pull-c"}}},
	{"roles.node.priorityClassName", list{"storage-node"}},
	{"roles.node.runAsUser", nil},
	{"roles.node.replicas", nil},
	{"roles.node.resources", list{fields{"registrar": fields{"requests": fields{"memory": "32Mi"}}}}},
	{"roles.node.updateStrategy", list{fields{"type": "OnDelete"}, fields{"rollingUpdate": fields{"maxUnavailable": "20%"}}}},
	{"hypershift.kubeconfigSecret", list{"another"}},
	{"hypershift.infraID", list{"prod-x7k2p"}},
	{"hypershift.platform", list{"None"}},
	{"hypershift.guestAccess", list{"serviceAccountToken", "adminKubeconfig"}},
}

const digest = "abababababababababababababababababababababababababababababababab"

// fixedCA is a certificate of a CA: no test depends on what it says.
const fixedCA = `-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIUA9IXzyPghkiiacGxXfBwlpxJWqkwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNYW4gZXhhbXBsZSBDQTAgFw0yNjExMjIxMTExMjhaGA8yMTI2
MTAyOTExMTEyOFowGDEWMBQGA1UEAwwNYW4gZXhhbXBsZSBDQTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABOKvUCOfxx8dXxM52/oe+0TYPRBHDHF+F/Q1bq9KUCrA
Rjd/ZesGPSFzS8hUEF5qvvsOfHQRGm4FS5sZeFVBKh2jUzBRMB0GA1UdDgQWBBTi
MfCTIZG/JHoni/6NEKOFiTl+kTAfBgNVHSMEGDAWgBTiMfCTIZG/JHoni/6NEKOF
iTl+kTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDrpvPwj9in
GRxBDGi/38/CvlQs05N2QAvD5eC3yXnQtAIgSGefeA+eq7XpZoShPNhuhvvGNHB/
SlPfAnf4i7j5XIw=
-----END CERTIFICATE-----
`
