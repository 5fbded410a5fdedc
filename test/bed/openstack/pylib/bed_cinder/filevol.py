"""A Cinder volume driver that keeps each volume in one sparse file.

For test clouds on a machine without device-mapper, iSCSI or NBD.  It is an
ordinary out-of-tree driver: cinder-api, cinder-scheduler and cinder-volume
are the distribution's own.

Layout:   <bed_volumes_dir>/<pool>/volume-<uuid>
          <bed_volumes_dir>/<pool>/snapshot-<uuid>

Fault injection: a file named after a driver method in <bed_faults_dir>
changes its next calls.  Content, one word per line:
    delay=SECONDS    sleep first
    fail             raise (volume goes to 'error', 'error_extending', ...)
    once             remove the file after one use
"""
import functools
import os
import time

from oslo_config import cfg
from oslo_log import log as logging

from cinder import exception
from cinder import interface
from cinder.volume import configuration
from cinder.volume import driver
from cinder.volume import volume_utils

LOG = logging.getLogger(__name__)

OPTS = [
    cfg.StrOpt('bed_volumes_dir', help='Directory of the sparse files'),
    cfg.StrOpt('bed_faults_dir', help='Directory of the fault files'),
    cfg.ListOpt('bed_pools', default=['standard', 'fast'],
                help='Pools to report'),
    cfg.IntOpt('bed_pool_size_gb', default=10000,
               help='Capacity each pool reports'),
]
cfg.CONF.register_opts(OPTS, group=configuration.SHARED_CONF_GROUP)

GB = 1024 ** 3


def faulty(func):
    """Let a file in bed_faults_dir delay or fail this method."""
    @functools.wraps(func)
    def wrapped(self, *args, **kwargs):
        path = os.path.join(self.faults or '/nonexistent', func.__name__)
        if os.path.exists(path):
            with open(path) as f:
                words = f.read().split()
            if 'once' in words:
                os.unlink(path)
            for w in words:
                if w.startswith('delay='):
                    time.sleep(float(w[6:]))
            if 'fail' in words:
                raise exception.VolumeBackendAPIException(
                    data='injected fault in %s' % func.__name__)
        return func(self, *args, **kwargs)
    return wrapped


@interface.volumedriver
class FileVolumeDriver(driver.VolumeDriver):
    VERSION = '1.0'
    CI_WIKI_NAME = 'none'

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTS)
        self.base = self.configuration.bed_volumes_dir
        self.faults = self.configuration.bed_faults_dir
        self.pools = self.configuration.bed_pools

    def do_setup(self, context):
        for pool in self.pools:
            os.makedirs(os.path.join(self.base, pool), exist_ok=True)

    def check_for_setup_error(self):
        pass

    # -- files ---------------------------------------------------------
    def _find(self, name):
        for pool in sorted(os.listdir(self.base)):
            path = os.path.join(self.base, pool, name)
            if os.path.exists(path):
                return path
        return None

    def _new(self, volume):
        pool = volume_utils.extract_host(volume['host'], 'pool')
        return os.path.join(self.base, pool or self.pools[0], volume['name'])

    def local_path(self, volume):
        return self._find(volume['name']) or self._new(volume)

    @staticmethod
    def _resize(path, gb):
        with open(path, 'ab') as f:
            if f.tell() < gb * GB:
                f.truncate(gb * GB)

    def _copy(self, src, dst):
        self._execute('cp', '--sparse=always', '--reflink=auto', src, dst)

    # -- volumes -------------------------------------------------------
    @faulty
    def create_volume(self, volume):
        path = self._new(volume)
        open(path, 'wb').close()
        self._resize(path, volume['size'])

    @faulty
    def create_volume_from_snapshot(self, volume, snapshot):
        src = self._find(snapshot['name'])
        if src is None:
            raise exception.SnapshotNotFound(snapshot_id=snapshot['id'])
        dst = self._new(volume)
        self._copy(src, dst)
        self._resize(dst, volume['size'])

    @faulty
    def create_cloned_volume(self, volume, src_vref):
        dst = self._new(volume)
        self._copy(self.local_path(src_vref), dst)
        self._resize(dst, volume['size'])

    @faulty
    def delete_volume(self, volume):
        path = self._find(volume['name'])
        if path:
            os.unlink(path)

    @faulty
    def extend_volume(self, volume, new_size):
        self._resize(self.local_path(volume), new_size)

    # -- snapshots -----------------------------------------------------
    @faulty
    def create_snapshot(self, snapshot):
        src = self.local_path(snapshot.volume)
        self._copy(src, os.path.join(os.path.dirname(src), snapshot['name']))

    @faulty
    def delete_snapshot(self, snapshot):
        path = self._find(snapshot['name'])
        if path:
            os.unlink(path)

    @faulty
    def revert_to_snapshot(self, context, volume, snapshot):
        dst = self.local_path(volume)
        self._copy(self._find(snapshot['name']), dst)
        self._resize(dst, volume['size'])

    # -- attach --------------------------------------------------------
    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    @faulty
    def initialize_connection(self, volume, connector, **kwargs):
        return {'driver_volume_type': 'local',
                'data': {'device_path': self.local_path(volume)}}

    @faulty
    def terminate_connection(self, volume, connector, **kwargs):
        # cinder-backup opens the file for a restore, which empties it, and
        # Cinder 26 skips zeros at the end. A disk would keep its size.
        self._resize(self.local_path(volume), volume['size'])

    # -- the rest ------------------------------------------------------
    def retype(self, context, volume, new_type, diff, host):
        # Same pool: nothing to do.  Another pool: cinder migrates.
        return volume['host'] == host['host']

    def migrate_volume(self, context, volume, host):
        return False, None

    def update_migrated_volume(self, ctxt, volume, new_volume,
                               original_volume_status):
        return {'_name_id': new_volume['_name_id'] or new_volume['id'],
                'provider_location': new_volume['provider_location']}

    def _update_volume_stats(self):
        name = (self.configuration.safe_get('volume_backend_name') or
                self.__class__.__name__)
        pools = []
        for pool in self.pools:
            d = os.path.join(self.base, pool)
            used = sum(os.stat(os.path.join(d, f)).st_size
                       for f in os.listdir(d)) / GB
            size = self.configuration.bed_pool_size_gb
            pools.append({
                'pool_name': pool,
                'volume_backend_name': pool,
                'total_capacity_gb': size,
                'free_capacity_gb': max(size - used, 0),
                'provisioned_capacity_gb': used,
                'reserved_percentage': 0,
                'thin_provisioning_support': True,
                'thick_provisioning_support': False,
                'max_over_subscription_ratio': 20.0,
                'QoS_support': False,
                'multiattach': True,
                'online_extend_support': True,
                'filter_function': self.get_filter_function(),
                'goodness_function': self.get_goodness_function(),
            })
        self._stats = {'volume_backend_name': name,
                       'vendor_name': 'lab',
                       'driver_version': self.VERSION,
                       'storage_protocol': 'local',
                       'pools': pools}
