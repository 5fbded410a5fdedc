"""Cinder's own RBD driver, with the faults of filevol.py.

Nothing else differs from the driver that clouds run.
"""
from cinder import interface
from cinder.volume import configuration
from cinder.volume.drivers import rbd
from oslo_config import cfg

from bed_cinder.filevol import faulty

OPTS = [cfg.StrOpt('bed_faults_dir', help='Directory of the fault files')]
cfg.CONF.register_opts(OPTS, group=configuration.SHARED_CONF_GROUP)


@interface.volumedriver
class BedRBDDriver(rbd.RBDDriver):
    CI_WIKI_NAME = 'none'

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTS)
        self.faults = self.configuration.bed_faults_dir


for name in ('create_volume', 'create_volume_from_snapshot',
             'create_cloned_volume', 'delete_volume', 'extend_volume',
             'create_snapshot', 'delete_snapshot', 'revert_to_snapshot',
             'initialize_connection', 'terminate_connection'):
    setattr(BedRBDDriver, name, faulty(getattr(rbd.RBDDriver, name)))
