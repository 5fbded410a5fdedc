package cause

// The causes that kubectl cinder finds.
const (
	None             ID = "none"
	ClaimMissing     ID = "claim.missing"
	ClaimUnreadable  ID = "claim.unreadable"
	ClaimLost        ID = "claim.lost"
	ClassMissing     ID = "class.missing"
	SourceNotReady   ID = "source.not-ready"
	PodNone          ID = "pod.none"
	PodUnschedulable ID = "pod.unschedulable"
	PodZone          ID = "pod.zone"
	PodAttachLimit   ID = "pod.attach-limit"
	DriverNotRunning ID = "driver.not-running"
	DriverUnseen     ID = "driver.unseen"
	DriverNoLeader   ID = "driver.no-leader"
	CreateRefused    ID = "create.refused"
	CreateWaiting    ID = "create.waiting"
	BindWaiting      ID = "bind.waiting"
	NodeUnregistered ID = "node.unregistered"
	NodeNotReady     ID = "node.not-ready"
	ServerUnknown    ID = "server.unknown"
	AttachStuck      ID = "attach.stuck"
	AttachError      ID = "attach.error"
	AttachLost       ID = "attach.lost"
	AttachUnknown    ID = "attach.unknown"
	AttachWaiting    ID = "attach.waiting"
	DetachStuck      ID = "detach.stuck"
	MountError       ID = "mount.error"
	MountWaiting     ID = "mount.waiting"
	MountReadOnly    ID = "mount.read-only"
	MountUnhealthy   ID = "mount.unhealthy"
	ExpandError      ID = "expand.error"
	ExpandWaiting    ID = "expand.waiting"
	ExpandNode       ID = "expand.node"
	ExpandNodeError  ID = "expand.node-error"
	ModifyError      ID = "modify.error"
	ModifyWaiting    ID = "modify.waiting"
	VolumeSize       ID = "volume.size"
	DeleteInUse      ID = "delete.in-use"
	DeleteError      ID = "delete.error"
	DeleteWaiting    ID = "delete.waiting"
)

var claimCauses = []Cause{
	{None, "nothing hangs", "nothing", Nobody, true},
	{ClaimMissing, "there is no claim of this name", "create the claim, or correct its name", User, false},
	{ClaimUnreadable, "the user may not read the claim", "use a kubeconfig that may read it", Cluster, false},
	{ClaimLost, "the claim is Lost: its PersistentVolume is gone", "create the PersistentVolume again, if the volume still exists", Cluster, false},
	{ClassMissing, "the StorageClass of the claim does not exist, or the claim has none", "create the class, or delete the claim and name another", Cluster, false},
	{SourceNotReady, "the snapshot or claim that the volume is made from is not ready", "read the status of the VolumeSnapshot", User, true},
	{PodNone, "the class waits for the first pod that uses the claim, and there is none", "create a pod that uses the claim", User, false},
	{PodUnschedulable, "the scheduler finds no node for the pod", "read the message of the scheduler", Cluster, true},
	{PodZone, "no node of the pod is in the zone of the volume", "add or free a node in the zone of the volume", Cluster, true},
	{PodAttachLimit, "the nodes have no room for one more volume", "add a node, or move pods with volumes", Cluster, true},
	{DriverNotRunning, "no controller of the driver is ready", "start the controller of the driver", Cluster, false},
	{DriverUnseen, "this cluster has no controller of the driver, and no other cluster was named", "name the cluster of the controller", Cluster, false},
	{DriverNoLeader, "a sidecar of the driver has no leader", "read the log of the sidecars", Cluster, true},
	{CreateRefused, "the driver refuses to create the volume, and names no cause", "read the error", Cluster, false},
	{CreateWaiting, "the volume is being created", "wait", Nobody, true},
	{BindWaiting, "Kubernetes has not bound the claim to its PersistentVolume", "describe the claim", Cluster, true},
	{NodeUnregistered, "the node plugin of the driver is not registered on the node", "start the node plugin there", Cluster, false},
	{NodeNotReady, "the node of the volume is not ready", "repair the node, or shut its server down and set the taint out-of-service", Cluster, true},
	{ServerUnknown, "Nova does not have the server of a node that is ready", "use the credentials of the project of the nodes", Cluster, false},
	{AttachStuck, "Cinder or Nova does not finish the attach", "read the nova-compute log of the host of the server", Cloud, true},
	{AttachError, "the attach fails, and the error names no cause", "read the error", Cluster, false},
	{AttachLost, "Kubernetes shows the volume as attached; Cinder or Nova does not", "stop every pod of the claim, and start them once the VolumeAttachment is gone", Cluster, false},
	{AttachUnknown, "the volume is attached to a server for which Kubernetes has no VolumeAttachment", "find out who uses the disk there", Cluster, false},
	{AttachWaiting, "the volume is being attached", "wait", Nobody, true},
	{DetachStuck, "Cinder or Nova does not finish the detach", "read the nova-compute log of the host of the server", Cloud, true},
	{MountError, "kubelet cannot mount the volume, and the error names no cause", "read the error and the log of the node plugin", Cluster, false},
	{MountWaiting, "kubelet mounts the volume", "wait", Nobody, true},
	{MountReadOnly, "the kernel made the file system read-only after an error", "stop the pods, repair the file system, start them again", Cluster, false},
	{MountUnhealthy, "the disk or the file system of a mounted volume has errors, or does not answer", "read the kernel log of the node", Cluster, false},
	{ExpandError, "Cinder does not expand the volume, and the error names no cause", "read the error", Cluster, false},
	{ExpandWaiting, "Cinder expands the volume", "wait", Nobody, true},
	{ExpandNode, "the file system grows when a pod on a node uses the volume", "start a pod that uses the claim", User, false},
	{ExpandNodeError, "kubelet cannot grow the file system, and the error names no cause", "read the error and the log of the node plugin", Cluster, false},
	{ModifyError, "the change to a VolumeAttributesClass fails, and the error names no cause", "read the error", Cluster, false},
	{ModifyWaiting, "the driver changes the volume to a VolumeAttributesClass", "wait", Nobody, true},
	{VolumeSize, "the volume is smaller in Cinder than in Kubernetes", "make a backup of what can be read", Cluster, false},
	{DeleteInUse, "the claim is being deleted, but a pod uses it", "delete the pods that use the claim", User, false},
	{DeleteError, "the volume is not deleted, and the error names no cause", "read the error", Cluster, false},
	{DeleteWaiting, "the volume is being deleted", "wait", Nobody, true},
}
