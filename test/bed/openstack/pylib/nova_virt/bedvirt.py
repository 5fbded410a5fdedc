"""Nova's fake hypervisor, with disks that a storage test can see.

Servers do not run, but what they would see of their disks is kept by
serverdir.py under BED_SERVERS. BED_ATTACH=none keeps only the books.
"""
import os

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova.api.metadata import base as metadata
from nova.virt import fake
import rbdfile
from serverdir import ServerDir

LOG = logging.getLogger(__name__)
ROOT = os.environ['BED_SERVERS']
LOOP = os.environ['BED_ATTACH'] == 'loop'

# Two servers on two computes may share one loop device.
exclusive = lockutils.synchronized(
    'disks', external=True, lock_path=os.path.join(ROOT, '.lock'))


class BedDriver(fake.FakeDriver):
    vcpus = 256
    memory_mb = 1048576
    local_gb = 100000

    def init_host(self, host):
        super().init_host(host)
        for uuid in os.listdir(ROOT):
            try:
                record = ServerDir(ROOT, uuid).load()
            except OSError:
                continue  # by-name, .lock, or half made
            if record['host'] == host:
                self.instances[uuid] = fake.FakeInstance(
                    record['name'], record['state'], uuid)
                if LOOP:
                    self._replug(ServerDir(ROOT, uuid), record)

    @exclusive
    def _replug(self, server, record):
        # A server that runs sees nothing of a restart of nova-compute.
        names = {volume_id: os.path.basename(device)
                 for volume_id, device in record['devices'].items()}
        server.forget_disks_but(names.values())
        for volume_id, file in record['volumes'].items():
            try:
                if rbdfile.is_image(file):
                    rbdfile.show(file)
                if not server.shows(volume_id, file, names[volume_id]):
                    server.plug(volume_id, file, names[volume_id])
            except Exception:
                LOG.exception('volume %s of server %s is not shown again',
                              volume_id, server.uuid)

    def spawn(self, context, instance, image_meta, injected_files,
              admin_password, allocations, network_info=None,
              block_device_info=None, power_on=True, accel_info=None):
        super().spawn(context, instance, image_meta, injected_files,
                      admin_password, allocations, network_info,
                      block_device_info, power_on, accel_info)
        server = ServerDir(ROOT, instance.uuid)
        server.create({
            'name': instance.name, 'hostname': instance.hostname,
            'display_name': instance.display_name, 'host': self._host,
            'state': self.instances[instance.uuid].state,
            'volumes': {}, 'devices': {}}, instance.hostname)
        server.write_config_drive(metadata.InstanceMetadata(
            instance, content=injected_files,
            network_info=network_info).metadata_for_config_drive())
        for bdm in (block_device_info or {}).get('block_device_mapping', []):
            self.attach_volume(context, bdm['connection_info'], instance,
                               bdm['mount_device'])

    def destroy(self, context, instance, network_info, *more, **named):
        # Nova has added arguments since Victoria.
        super().destroy(context, instance, network_info, *more, **named)
        server = ServerDir(ROOT, instance.uuid)
        try:
            record = server.load()
        except FileNotFoundError:
            return
        for volume_id in list(record['volumes']):
            self._unplug(server, record, volume_id)
        server.remove(record['hostname'])

    def default_root_device_name(self, instance, image_meta, root_bdm):
        return '/dev/vda'

    def attach_volume(self, context, connection_info, instance, mountpoint,
                      disk_bus=None, device_type=None, encryption=None):
        super().attach_volume(context, connection_info, instance, mountpoint,
                              disk_bus, device_type, encryption)
        self._plug(ServerDir(ROOT, instance.uuid),
                   *_volume(connection_info), mountpoint)

    def detach_volume(self, context, connection_info, instance, mountpoint,
                      encryption=None):
        super().detach_volume(context, connection_info, instance, mountpoint,
                              encryption)
        server = ServerDir(ROOT, instance.uuid)
        self._unplug(server, server.load(), _volume(connection_info)[0])

    def swap_volume(self, *args, **named):
        # The fake driver only notes it, so the server would lose its data.
        # A loop device cannot change its file while it is written.
        raise NotImplementedError()

    @exclusive
    def extend_volume(self, context, connection_info, instance,
                      requested_size):
        volume_id, file = _volume(connection_info)
        server = ServerDir(ROOT, instance.uuid)
        device = server.load()['devices'][volume_id]
        if LOOP and rbdfile.is_image(file):
            rbdfile.grow(file, requested_size)
        if LOOP:
            server.resize(file, os.path.basename(device))

    @exclusive
    def _plug(self, server, volume_id, file, device):
        if LOOP and rbdfile.is_image(file):
            rbdfile.show(file)
        if LOOP:
            server.plug(volume_id, file, os.path.basename(device))
        record = server.load()
        record['volumes'][volume_id] = file
        record['devices'][volume_id] = device
        server.save(record)

    @exclusive
    def _unplug(self, server, record, volume_id):
        file = record['volumes'].pop(volume_id, None)
        device = record['devices'].pop(volume_id, None)
        if file is None:
            return
        server.save(record)
        if LOOP:
            last = server.unplug(volume_id, file, os.path.basename(device))
            if last and rbdfile.is_image(file):
                rbdfile.hide(file)


def _volume(connection_info):
    data = connection_info['data']
    return (connection_info.get('serial') or data['volume_id'],
            data.get('device_path') or rbdfile.path(data['name']))
