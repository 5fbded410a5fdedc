package cause

// The causes that the driver returns.
const (
	CloudCredentials  ID = "cloud.credentials"
	CloudRights       ID = "cloud.rights"
	CloudTokenRefused ID = "cloud.token-refused"
	CloudCertificate  ID = "cloud.certificate"
	CloudSettings     ID = "cloud.settings"
	CloudUnreachable  ID = "cloud.unreachable"
	CloudRateLimited  ID = "cloud.rate-limited"
	CloudProxy        ID = "cloud.proxy"
	CloudAnswer       ID = "cloud.answer"
	CloudKeyManager   ID = "cloud.key-manager"
	CloudUnsupported  ID = "cloud.unsupported"

	QuotaVolumes    ID = "quota.volumes"
	QuotaGigabytes  ID = "quota.gigabytes"
	QuotaSnapshots  ID = "quota.snapshots"
	QuotaBackups    ID = "quota.backups"
	QuotaExceeded   ID = "quota.exceeded"
	QuotaVolumeSize ID = "quota.volume-size"

	CreateType           ID = "create.type"
	CreateTypeSingle     ID = "create.type-single"
	CreateZone           ID = "create.zone"
	CreateNoBackend      ID = "create.no-backend"
	CreateError          ID = "create.error"
	CreateNameTaken      ID = "create.name-taken"
	CreateLeftover       ID = "create.leftover"
	CreateOutcomeUnknown ID = "create.outcome-unknown"
	CreateSource         ID = "create.source"
	CreateRestore        ID = "create.restore"

	VolumeError           ID = "volume.error"
	VolumeMissing         ID = "volume.missing"
	VolumeOtherCluster    ID = "volume.other-cluster"
	VolumeUnmarked        ID = "volume.unmarked"
	VolumeAttached        ID = "volume.attached"
	VolumeDependents      ID = "volume.dependents"
	VolumeDeleteError     ID = "volume.delete-error"
	VolumeExpandError     ID = "volume.expand-error"
	VolumeModifyError     ID = "volume.modify-error"
	VolumeModifySnapshots ID = "volume.modify-snapshots"
	VolumeBusy            ID = "volume.busy"

	SnapshotError    ID = "snapshot.error"
	SnapshotAttached ID = "snapshot.attached"
	SnapshotRefused  ID = "snapshot.refused"
	BackupSlow       ID = "backup.slow"
	BackupService    ID = "backup.service"
	BackupShared     ID = "backup.shared"

	AttachElsewhere ID = "attach.elsewhere"
	AttachLimit     ID = "attach.limit"
	AttachReserved  ID = "attach.reserved"
	AttachStale     ID = "attach.stale"
	AttachLeftover  ID = "attach.leftover"
	AttachHost      ID = "attach.host"
	AttachZone      ID = "attach.zone"
	AttachQueue     ID = "attach.queue"
	DetachHostDown  ID = "detach.host-down"
	DetachForeign   ID = "detach.foreign"
	ServerForeign   ID = "server.foreign"
	ServerLocked    ID = "server.locked"
	ServerMissing   ID = "server.missing"
	ServerShelved   ID = "server.shelved"
	ServerError     ID = "server.error"

	DiskMissing    ID = "disk.missing"
	DiskSilent     ID = "disk.silent"
	DiskChanged    ID = "disk.changed"
	DiskAmbiguous  ID = "disk.ambiguous"
	DiskUnreadable ID = "disk.unreadable"
	DiskSize       ID = "disk.size"
	DiskInUse      ID = "disk.in-use"
	DiskPath       ID = "disk.path"

	FsNeedsRepair    ID = "fs.needs-repair"
	FsUnknownContent ID = "fs.unknown-content"
	FsLargerThanDisk ID = "fs.larger-than-disk"
	FsDevices        ID = "fs.devices"
	FsReadOnly       ID = "fs.read-only"
	FsUnsupported    ID = "fs.unsupported"
	FsFormat         ID = "fs.format"
	FsGrow           ID = "fs.grow"

	MountFailed    ID = "mount.failed"
	MountBusy      ID = "mount.busy"
	MountDiffers   ID = "mount.differs"
	MountNotStaged ID = "mount.not-staged"
	MountLost      ID = "mount.lost"
	MountSingle    ID = "mount.single"
	MountSELinux   ID = "mount.selinux"

	NodeSystem   ID = "node.system"
	NodeProgram  ID = "node.program"
	NodeMemory   ID = "node.memory"
	NodeIdentity ID = "node.identity"
	NodeMismatch ID = "node.mismatch"
	NodeZone     ID = "node.zone"

	KubernetesUnreachable ID = "kubernetes.unreachable"
	KubernetesRights      ID = "kubernetes.rights"

	RequestInvalid     ID = "request.invalid"
	RequestSize        ID = "request.size"
	RequestMissing     ID = "request.missing"
	RequestUnsupported ID = "request.unsupported"
	RequestDeadline    ID = "request.deadline"
	RequestCanceled    ID = "request.canceled"
	DriverStopping     ID = "driver.stopping"
	DriverDefect       ID = "driver.defect"
)

var driverCauses = []Cause{
	{CloudCredentials, "Keystone refuses the credentials of the driver", "put a valid credential into the Secret with clouds.yaml; the driver reads it again without a restart", Cluster, false},
	{CloudRights, "a policy of the cloud forbids the request with the credentials of the driver", "give the user a role, or the application credential an access rule, that allows the request", Cloud, false},
	{CloudTokenRefused, "Cinder or Nova refuses the tokens of Keystone: an access rule is missing, or a clock is wrong", "run cinder-csi-generator doctor, which says which of the two it is", Cloud, false},
	{CloudCertificate, "the driver does not trust the certificate of the cloud", "put the CA of the cloud into its place; the driver reads it again without a restart", Cluster, false},
	{CloudSettings, "the settings of the driver do not lead to the cloud, project and region", "correct cloud.conf or clouds.yaml; the driver reads them again without a restart", Cluster, false},
	{CloudUnreachable, "the driver does not reach Keystone, Cinder or Nova, or the service fails", "check DNS, proxy and firewall between the controller pods and the cloud, and the service itself", Cloud, true},
	{CloudRateLimited, "the cloud asks the driver for fewer requests", "wait; if it stays, raise the rate limit of the cloud, or lower the budget of the driver", Cloud, true},
	{CloudProxy, "a proxy or a load balancer answers in place of Cinder or Nova", "check the route from the controller pods to the service", Cloud, true},
	{CloudAnswer, "Cinder, Nova or a proxy answers with something that the driver did not ask for", "look for a defect in the service, or in a proxy or cache before it", Cloud, true},
	{CloudKeyManager, "Cinder gets no key of an encrypted volume from the key manager", `give the credential the role that may use keys, mostly "creator"; check that Barbican runs`, Cloud, false},
	{CloudUnsupported, "this version or configuration of the cloud does not support the request", "use a class without the feature, or have the cloud upgraded", Cloud, false},
	{QuotaVolumes, "the project has as many volumes as its quota allows", "delete volumes that nobody needs, or raise the quota volumes", Cloud, false},
	{QuotaGigabytes, "the gigabytes quota of the project has no room for it", "claim less, delete what nobody needs, or raise the quota gigabytes", Cloud, false},
	{QuotaSnapshots, "the project has as many snapshots as its quota allows", "delete snapshots that nobody needs, or raise the quota snapshots", Cloud, false},
	{QuotaBackups, "a quota of the project for backups is used up", "delete backups that nobody needs, or raise the quotas backups and backup_gigabytes", Cloud, false},
	{QuotaExceeded, "a quota of the project is used up, and Cinder does not say which", "compare quota and usage: openstack limits show --absolute", Cloud, false},
	{QuotaVolumeSize, "one volume may not be as large as the claim asks for", "ask for a smaller volume, or raise the quota per_volume_gigabytes", User, false},
	{CreateType, "the volume type of the class does not exist, or the project may not use it", "correct the parameter type of the StorageClass: delete the class and create it again, and then the claim", Cluster, false},
	{CreateTypeSingle, "the access mode needs a volume type that allows several servers", "name a volume type with the extra spec multiattach in the StorageClass, or use an access mode for one node", Cluster, false},
	{CreateZone, "no allowed zone can have the volume", "map compute zones to volume zones with [Zone] in cloud.conf, or turn topology off; check the zones of the StorageClass", Cluster, false},
	{CreateNoBackend, "no backend of Cinder takes the volume, in this zone or at all", "choose another zone or type, or add capacity", Cloud, false},
	{CreateError, "Cinder tried to create the volume and failed; the driver deleted it", "look for the volume ID and the request ID in the logs of cinder-volume", Cloud, false},
	{CreateNameTaken, "an object of this name exists and differs from the request", "delete or rename the object in Cinder if nobody needs it", Cluster, false},
	{CreateLeftover, "a failed object of this name exists, and the driver did not create it for this request", "delete it in Cinder", Cluster, false},
	{CreateOutcomeUnknown, "Cinder did not answer a create, so the driver waits before it sends another", "wait two minutes; if it stays, find out why Cinder is slow", Nobody, true},
	{CreateSource, "the volume, snapshot or backup to copy from is not in a usable status", "have the status of the source reset, or choose another source", Cloud, false},
	{CreateRestore, "the volume has not got the data of its backup yet", "wait; if it stays, check that cinder-backup runs; delete the volume if nobody needs it", Cloud, true},
	{VolumeError, "Cinder shows the volume in a status that does not change by itself", "find the reason in the logs of cinder-volume, and reset the status", Cloud, false},
	{VolumeMissing, "the volume is gone from Cinder", "restore its data from a backup; check the project of the credentials", Cluster, false},
	{VolumeOtherCluster, "the object has the mark of another cluster", "leave it to that cluster; if that cluster is lost, change the mark with kubectl cinder recover", Cluster, false},
	{VolumeUnmarked, "the object has no mark, and the driver is strict: it may be another cluster's", "take it over with the command of the message, if it belongs to this cluster", Cluster, false},
	{VolumeAttached, "a volume that is attached cannot be deleted, copied or restored into", "detach it from the server, if nothing there uses it", Cluster, false},
	{VolumeDependents, "Cinder does not delete an object that others depend on", "delete the snapshots, copies, backups or group that depend on it first", User, false},
	{VolumeDeleteError, "Cinder tried to delete the object and failed", "find the reason in the logs of Cinder, and reset the status", Cloud, false},
	{VolumeExpandError, "Cinder tried to expand the volume and failed", "find the reason in the logs of cinder-volume, and reset the status", Cloud, false},
	{VolumeModifyError, "Cinder did not change the type of the volume", "find the reason in the logs of Cinder, or name another VolumeAttributesClass", Cloud, false},
	{VolumeModifySnapshots, "the driver does not change the type of a volume that has snapshots with metadata", "delete the snapshots, or remove their metadata", User, false},
	{VolumeBusy, "Cinder, Nova or another call works on the object", "wait; the driver tries again", Nobody, true},
	{SnapshotError, "Cinder tried to create the snapshot or backup and failed", "look for its ID in the logs of cinder-volume or cinder-backup", Cloud, false},
	{SnapshotAttached, "this Cinder makes a snapshot of an attached volume only by force", "set force-create in the VolumeSnapshotClass, or stop the pod", Cluster, false},
	{SnapshotRefused, "the status of the volume or of its backend allows no snapshot now", "have the status of the volume reset, or the backend thawed", Cloud, false},
	{BackupSlow, "the backup takes longer than the VolumeSnapshotClass allows", "allow more time in the VolumeSnapshotClass; check that cinder-backup runs", Cluster, true},
	{BackupService, "no cinder-backup service works on the backup", "start cinder-backup in the zone of the backup", Cloud, true},
	{BackupShared, "a backup in Ceph could destroy, or lack, the data of another", "follow the message: it says which backup must go first", Cluster, false},
	{AttachElsewhere, "the volume is attached to another server", "stop what uses it there; if nothing does, detach it there", Cluster, false},
	{AttachLimit, "the server cannot take one more volume", "add a node, or move pods with volumes from this node", Cluster, false},
	{AttachReserved, "Cinder keeps a reservation of the volume that no server uses", "delete the attachment in Cinder, if the server does not use the disk", Cloud, false},
	{AttachStale, "Cinder shows an attachment that the driver may not delete", "delete the attachment in Cinder with the command of the message, logged in with a password", Cloud, false},
	{AttachLeftover, "only Nova still lists the volume at the server", "reboot the server; with Nova before 2023.2 an administrator removes the entry", Cloud, false},
	{AttachHost, "Nova accepted the request, and the host of the server failed", "read the nova-compute log of the host of the server", Cloud, false},
	{AttachZone, "Nova attaches no volume of another zone to this server", "use a class whose zone is that of the node; check cross_az_attach of Nova", Cluster, false},
	{AttachQueue, "many attach and detach requests wait for this server", "wait; if it stays, find out why Nova or the host of the server is slow", Nobody, true},
	{DetachHostDown, "nova-compute is down on the host of the server", "start nova-compute; if the host is lost, evacuate or delete the server", Cloud, false},
	{DetachForeign, "the volume is attached to a host that is no Nova server", "detach it there, if nothing uses it", Cloud, false},
	{ServerForeign, "the metadata of the server does not show that it is a node of this cluster", "set the property with the command of the message, if the server is a node of this cluster", Cluster, false},
	{ServerLocked, "somebody locked the server of the node", "unlock the server", Cluster, false},
	{ServerMissing, "the server of the node is gone from Nova", "delete the node", Cluster, false},
	{ServerShelved, "the server is shelved and has no host", "unshelve the server", Cluster, false},
	{ServerError, "the server of the node is in status ERROR", "have the server repaired, or delete the node", Cloud, false},
	{DiskMissing, "the node shows no disk with the serial of the volume", "wait; if it stays, compare the serials in the message, and check the disk bus of the server image", Cluster, true},
	{DiskSilent, "the disk does not answer", "check the storage backend and the path to it from the host of the server", Cloud, true},
	{DiskChanged, "the device is not, or no longer, the disk of the volume", "wait; if it stays, restart the node plugin and report the message", Cluster, true},
	{DiskAmbiguous, "several disks have the serial of the volume", "use a disk bus with long serials, such as SCSI or virtio with 20 characters", Cloud, false},
	{DiskUnreadable, "the driver cannot read the disk, so it does not use it", "check the storage backend; the data may be unharmed", Cloud, false},
	{DiskSize, "the disk has not got the size of the volume yet", "wait; if it stays, check that the hypervisor has taken the expansion over", Cloud, true},
	{DiskInUse, "something on the node still uses the disk", "end the programs or mounts that the message names", Cluster, true},
	{DiskPath, "something else lies where the volume belongs on the node", "empty or unmount the path that the message names", Cluster, false},
	{FsNeedsRepair, "the file system has errors that only a person may repair", "make a snapshot of the volume, then repair the file system with fsck", Cluster, false},
	{FsUnknownContent, "the disk has content that the driver does not mount and never overwrites", "check what is on the disk; name its file system in the class, or delete the volume if nobody needs it", Cluster, false},
	{FsLargerThanDisk, "the file system is larger than its disk", "expand the volume to the size of the file system, or restore a backup", Cluster, false},
	{FsDevices, "the file system spans several devices, or another disk has the same UUID", "mount one copy at a time, or make the volume with one device", Cluster, false},
	{FsReadOnly, "the file system takes no writes", "stop the pods of the volume, so that it is unmounted, and start them again; read the kernel log of the node", Cluster, false},
	{FsUnsupported, "the driver does not support this file system, or an option of it", "use a supported file system in the class", Cluster, false},
	{FsFormat, "mkfs failed", "read the message of mkfs; check the format options of the StorageClass", Cluster, false},
	{FsGrow, "the file system could not be grown", "read the message of the tool; the volume itself is larger already", Cluster, false},
	{MountFailed, "the kernel refuses to mount or unmount the file system", "read the kernel log of the node; check the mount options of the class", Cluster, false},
	{MountBusy, "something on the node still uses the mount", "end the programs that the message names; kubelet tries again", Cluster, true},
	{MountDiffers, "the volume is mounted in another way than the request asks for", "delete the pods of the volume on this node, so that it is unmounted first", User, false},
	{MountNotStaged, "the volume is not mounted at its staging path", "wait; if it stays, delete the pod", User, true},
	{MountLost, "the mount has lost its disk", "delete the pod, so that the volume is mounted again", User, false},
	{MountSingle, "the access mode allows one target, and another pod has the volume", "delete the other pod, or use another access mode", User, false},
	{MountSELinux, "the mount lost its SELinux option", "follow the message; check the SELinux policy of the node", Cluster, false},
	{NodeSystem, "a system call or a file of the node fails", "read the message and the kernel log of the node", Cluster, false},
	{NodeProgram, "a program of the driver image is missing or does not start", "use an unchanged driver image", Cluster, false},
	{NodeMemory, "a program of the driver was killed, had no memory, or hangs", "raise the memory limit of the node plugin; check the disk", Cluster, true},
	{NodeIdentity, "the node cannot learn which server it is", "make the metadata service or the config drive available to the server", Cloud, true},
	{NodeMismatch, "metadata and hardware name different servers", "repair the metadata of the server; the driver registers no node that may be another", Cloud, false},
	{NodeZone, "the zone of the server cannot be the value of a label", "turn topology off, or give the zone another name", Cluster, false},
	{KubernetesUnreachable, "the Kubernetes API does not answer the driver", "check the network from the driver pods to the API server", Cluster, true},
	{KubernetesRights, "the account of the driver lacks a right in Kubernetes", "apply the RBAC objects of the bundle again", Cluster, false},
	{RequestInvalid, "the request is wrong and stays wrong", "correct what the message names: the claim, the class or an annotation", Cluster, false},
	{RequestSize, "no volume can have the size that the request asks for", "change the size of the claim", User, false},
	{RequestMissing, "an object that the request names does not exist", "check whether somebody deleted it, or whether the credentials are for another project", Cluster, false},
	{RequestUnsupported, "the driver, or this cloud, does not support the request", "use a class or access mode without the feature", Cluster, false},
	{RequestDeadline, "the time of the call is over; the next call goes on", "wait; the message says what the driver waited for", Nobody, true},
	{RequestCanceled, "the caller ended the call; the next call goes on", "wait", Nobody, true},
	{DriverStopping, "the driver is being stopped", "wait for the next pod of the driver", Nobody, true},
	{DriverDefect, "the driver did not expect this error", "report it with the log of the driver", Cluster, false},
}
