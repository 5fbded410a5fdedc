package v1alpha1

var specAbouts = map[string]about{
	"Distribution.apiVersion": {"The format of this document.", APIVersion, "any other; a newer one is an exit 1 that names it"},
	"Distribution.kind":       {"The kind of this document.", KindDistribution, "any other"},
	"Distribution.metadata":   {Meaning: "Names the configuration."},
	"Distribution.spec":       {Meaning: "The settings that differ from the defaults."},
	"Metadata.name":           {"The cluster's name. Other defaults use it.", "none", "on hypershift without namespaces.controller: a name that gives no valid namespace"},

	"Spec.kubernetesVersion": {"The lowest minor version of Kubernetes that is served, with or without a patch. Decides which API versions and fields are emitted.", defaultKubernetesVersion, "anything that is not a version; a version before 1.27"},
	"Spec.namespaces":        {Meaning: "The namespaces of the two roles."},
	"Namespaces.controller":  {"The controller's namespace; on hypershift the hosted control plane's, which HyperShift creates. A change is guarded.", "cinder-csi; on hypershift clusters- and metadata.name, with a warning", "an invalid namespace name"},
	"Namespaces.node":        {"The nodes' namespace; on hypershift in the guest, for the leases too. A change is guarded.", "cinder-csi-node; on hypershift cinder-csi", "an invalid namespace name"},
	"Spec.clusterID":         {"Marks this cluster's volumes in Cinder's metadata. A change is guarded.", "on hypershift hypershift.infraID; else metadata.name; else kubernetes, with a warning", "more than 255 characters; on hypershift another value than hypershift.infraID"},

	"Spec.driver":              {Meaning: "The driver's identity, its log and its limits."},
	"Driver.name":              {"The driver's name in the cluster. A change is guarded: volumes belong to the driver of their name. Unless it is one of the defaults, the names of ClusterRoles, their bindings and VolumeSnapshotClasses begin with it.", "cinder.csi.openstack.org; on OpenShift side by side cinder-csi.io", "an invalid driver name; cinder-csi; cinder-csi-backup; on OpenShift the built-in driver's name unless coexistence is adopt, and every other name if it is"},
	"Driver.pvcAnnotations":    {"Whether the driver reads scheduler hints from the annotations of claims, as upstream's can. Its container then has the pod's token, and every right of the sidecars.", "false, as upstream", "true on hypershift, where the controller runs in another cluster than the claims"},
	"Driver.metadata":          {"Where a node reads its server ID and zone: metadataService, configDrive, or both in the order in which it tries them.", `["metadataService", "configDrive"]`, "any other source; a source twice"},
	"Driver.requestsPerSecond": {Meaning: "Limits of the controller's requests to the cloud, on average, with bursts of 20 seconds' worth. 0 means no limit."},
	"Driver.seLinux":           {"Whether kubelet passes the SELinux context of a pod to the mount, instead of a new label on each file. The driver then mounts /etc/selinux and /sys/fs of the host. auto does so on OpenShift.", Auto, ""},
	"Driver.extraArgs":         {Meaning: "Flags of the driver that no other key sets, for each role."},
	"ExtraArgs.controller":     {"Flags of the controller's driver, each as --name=value.", "none", "an unknown flag; a value that the driver refuses; a flag that another key or the bundle sets"},
	"ExtraArgs.node":           {"Flags of the node's driver, each as --name=value.", "none", "an unknown flag; a value that the driver refuses; a flag that another key or the bundle sets"},
	"Spec.openshift":           {Meaning: "Settings for OpenShift only."},
	"OpenShift.coexistence":    {"Whether the driver runs beside OpenShift's built-in one (sideBySide: own names, no default class) or takes its name over (adopt).", SideBySide, "adopt on a hosted cluster of platform OpenStack"},

	"OpenShift.controlPlaneTopology": {"The control plane's topology, status.controlPlaneTopology of the Infrastructure: SingleReplica gives one controller pod, External no selector of control-plane nodes. Only for standalone.", HighlyAvailable, "any, on another target"},
	"OpenShift.clusterNetworks":      {"The cluster's service and pod networks, status.serviceNetwork and status.clusterNetwork of the Network. With a proxy they are added to NO_PROXY.", "none", "anything that is not a network such as 10.128.0.0/14; any, on vanilla"},
	"OpenShift.monitoring":           {"Which Prometheus of OpenShift reads the metrics: that of the platform, or that of user workloads. On hypershift it is for the nodes in the guest.", PlatformMonitoring, "any, on vanilla"},

	"Spec.credentials":        {Meaning: "Where the driver finds the cloud's credentials. The generator never sees them."},
	"Credentials.secretName":  {"The Secret with the credentials, in the controller's namespace. A person creates it; on a hosted cluster of platform OpenStack, HyperShift does.", "cinder-csi-credentials; on a hosted cluster of platform OpenStack metadata.name and -cloud-credentials", "an invalid Secret name"},
	"Credentials.key":         {"The key of the Secret that holds a clouds.yaml.", DefaultCredentialsKey, "an invalid key of a Secret"},
	"Credentials.cloud":       {"The entry in that clouds.yaml.", DefaultCloudEntry, ""},
	"Credentials.request":     {"Whether a CredentialsRequest asks OpenShift's Cloud Credential Operator for the Secret: auto does so on standalone.", Auto, ""},
	"Credentials.caBundle":    {"The CA certificates of OpenStack's endpoints, in PEM. They are public, and embedded in the bundle.", "none: the system's", "anything but certificates, comments too"},
	"Credentials.caConfigMap": {"An existing ConfigMap in the controller's namespace with these certificates, in place of caBundle: NAME or NAME/KEY. Without a key it is ca.pem.", "none", "an invalid name or key; caBundle beside it"},
	"Credentials.caKey":       {"A key of the Secret with these certificates, in place of caBundle. The pods wait until the Secret has it, and the driver reads it again when it changes.", "none: the key cacert counts where the Secret has it, as OpenShift and HyperShift fill it", "an invalid key of a Secret; key; caBundle or caConfigMap beside it"},

	"Spec.topology":    {Meaning: "Whether volumes and nodes carry zones."},
	"Topology.mode":    {"auto enables topology if every compute zone has a volume zone of the same name, after zoneMap. If the outcome changes, generate refuses until you accept it.", Auto, ""},
	"Topology.zoneMap": {"Compute zone to the volume zone that serves it, where their names differ.", "none", "an empty name; two compute zones with one label and different volume zones"},

	"Spec.volumeAttachLimit":     {"How many volumes a node takes: auto lets each node compute its own, a number is emitted as given.", Auto, "less than 1, more than 256"},
	"Spec.monitoring":            {Meaning: "Objects for Prometheus and Grafana."},
	"Monitoring.kind":            {"Which object of the Prometheus operator says where the metrics of both roles are.", None, ""},
	"Monitoring.alerts":          {"Whether alerts for the Prometheus operator are emitted (PrometheusRule). The alert about quotas comes with driver.capacity only.", "false", "true with kind none"},
	"Monitoring.dashboards":      {"Whether Grafana dashboards are emitted: ConfigMaps with the label grafana_dashboard.", "false", "true with kind none"},
	"Monitoring.runbookBase":     {"The address of a copy of this repository: the directory that has docs. Each alert then has runbook_url, with its section in docs/how-to/monitor.md. The README of the bundle links there too.", "none: alerts name the page in runbook, without an address", "anything but an http or https URL without user, query and fragment"},
	"Monitoring.nodePorts":       {"The first of three consecutive host ports on which the pods of the nodes listen: health, registrar, metrics. auto: 29601 to 29603; on OpenShift 9601 to 9603, which its installer opens between nodes.", Auto, "less than 1024, more than 65533"},
	"Monitoring.labels":          {"Further labels of each PodMonitor, ServiceMonitor and PrometheusRule, for a Prometheus that selects them by labels: {release: NAME} for kube-prometheus-stack.", "none", "invalid labels; labels that the bundle sets; any with kind none"},
	"Monitoring.tls":             {Meaning: "How the metrics are served with TLS, where they are: on standalone."},
	"TLS.minVersion":             {"The lowest TLS version.", "VersionTLS12", ""},
	"TLS.cipherSuites":           {"The cipher suites of TLS 1.2 and older, by their IANA names.", "those of OpenShift's profile Intermediate", "unknown names"},
	"Spec.nodeLifecycle":         {Meaning: "What the driver does when nodes come and go. Each feature needs rights in the cluster."},
	"NodeLifecycle.startupTaint": {"Whether the controller removes the taint DRIVER-NAME/agent-not-ready from a node once the driver is ready there. Its account may then change every node.", "false", "true on hypershift, where the controller has no token for the cluster of the nodes"},
	"NodeLifecycle.drainHook":    {"Whether the driver of a node that is being drained stays until the volumes there are detached, for 2 minutes at most. The account of the nodes may then read nodes and volume attachments.", "false", "true with a kubernetesVersion before 1.29"},

	"Spec.driftCheck":       {Meaning: "A CronJob that runs plan --check in the cluster."},
	"DriftCheck.schedule":   {"When it runs, in the syntax of CronJobs. Empty means no drift check.", "none", "anything that is not a schedule such as \"0 6 * * *\" or @daily; a configuration and decisions of more than 1 MiB, which no ConfigMap holds"},
	"Spec.networkPolicy":    {Meaning: "What the controller's pods may reach, and what may reach them."},
	"NetworkPolicy.enabled": {"Whether a NetworkPolicy is emitted; its ports are those of the cloud's catalog.", "false", "true where the cloud does not report its endpoints"},

	"NetworkPolicy.openstackCIDRs": {"The networks of OpenStack's endpoints.", "endpoints that are addresses; else any address on those ports", "anything that is not a network such as 192.0.2.0/24"},

	"NetworkPolicy.apiServerCIDRs":    {"The networks of the API server's addresses. Without effect on hypershift, where it is in the controller's namespace.", "any address on its ports", "anything that is not a network such as 192.0.2.0/24"},
	"NetworkPolicy.apiServerPorts":    {"The ports on which the API server listens, in place of 6443. On vanilla its Service's port 443 stays open too. microk8s listens on 16443.", "[6443]", "a port that is none from 1 to 65535"},
	"NetworkPolicy.dnsCIDRs":          {"Networks that answer DNS outside of the pods of the cluster, as NodeLocal DNSCache does on each node.", "none: only pods of the cluster are asked", "anything that is not a network such as 169.254.20.10/32"},
	"NetworkPolicy.metricsNamespaces": {"Namespaces whose pods may read the controller's metrics.", "none; on OpenShift its monitoring always may", "an invalid namespace name; none, on vanilla with a monitoring.kind, because Prometheus could read nothing"},

	"Spec.trustedCA": {"Whether the driver trusts OpenShift's cluster-wide CA bundle. A ConfigMap with the label config.openshift.io/inject-trusted-cabundle holds it.", "false", "true on vanilla, where nothing fills such a ConfigMap; caBundle or caConfigMap beside it"},

	"Spec.hypershift":             {Meaning: "Settings for hypershift only."},
	"HyperShift.kubeconfigSecret": {"The Secret beside the controller with the kubeconfig of the guest.", DefaultKubeconfigSecret, "an invalid Secret name"},
	"HyperShift.guestAccess":      {"How the sidecars reach the guest. serviceAccountToken: with a token of a service account, which has only the rights of the bundle; one more container renews it. Needs Kubernetes 1.29 in the management cluster. adminKubeconfig: each with HyperShift's kubeconfig of an administrator.", ServiceAccountToken, ""},
	"HyperShift.infraID":          {"The hosted cluster's infrastructure ID, which is the cluster ID.", "none, with a warning", "another value than spec.clusterID"},
	"HyperShift.platform":         {"The hosted cluster's platform. With OpenStack, HyperShift owns the Secret with the credentials, and adopt is refused.", "OpenStack is assumed, with a warning", ""},
}
