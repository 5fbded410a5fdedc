"""What a server would see of its disks, in a directory of this machine.

    ROOT/UUID/sys/block/vdb/{serial,dev,size}    as virtio-blk shows them
    ROOT/UUID/dev/vdb                            -> /dev/loopN
    ROOT/UUID/by-id/virtio-SERIAL                -> /dev/loopN
    ROOT/UUID/config-drive/openstack/...         as Nova would burn it
    ROOT/UUID/instance.json                      survives a restart
    ROOT/by-name/NAME                            -> ../UUID

A disk in sys/block is complete: it appears there last and goes first.
"""
import contextlib
import json
import os
import shutil
import subprocess

SERIAL_LENGTH = 20  # VIRTIO_BLK_ID_BYTES: the rest of the volume id is cut


def serial(volume_id):
    return volume_id[:SERIAL_LENGTH]


class ServerDir:
    def __init__(self, root, uuid):
        self.root = root
        self.uuid = uuid
        self.path = os.path.join(root, uuid)

    def create(self, record, hostname):
        self._make_directories()
        self.save(record)
        by_name = os.path.join(self.root, 'by-name')
        os.makedirs(by_name, exist_ok=True)
        _link('../' + self.uuid, os.path.join(by_name, hostname))

    def remove(self, hostname):
        shutil.rmtree(self.path, ignore_errors=True)
        link = os.path.join(self.root, 'by-name', hostname)
        if os.path.islink(link) and not os.path.exists(link):
            os.unlink(link)

    def load(self):
        with open(os.path.join(self.path, 'instance.json')) as f:
            return json.load(f)

    def save(self, record):
        self._write('instance.json', json.dumps(record, indent=1))

    def write_config_drive(self, files):
        for path, data in files:
            full = os.path.join(self.path, 'config-drive', path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'wb') as f:
                f.write(data if isinstance(data, bytes) else data.encode())

    def forget_disks_but(self, names):
        """Hide every other disk. The directories stay: nodes mount them.

        After down.sh they are gone, and a server has them again.
        """
        self._make_directories()
        volumes = set()
        for name in os.listdir(os.path.join(self.path, 'sys/block')):
            if name in names:
                volumes.add('virtio-' + self._read(name, 'serial'))
            else:
                self._hide(name)
        for directory, kept in (('dev', set(names)), ('by-id', volumes)):
            full = os.path.join(self.path, directory)
            for link in set(os.listdir(full)) - kept:
                os.unlink(os.path.join(full, link))

    def _make_directories(self):
        for name in ('sys/block', 'dev', 'by-id'):
            os.makedirs(os.path.join(self.path, name), exist_ok=True)

    def shows(self, volume_id, file, name):
        """Whether the file is shown as disk NAME already."""
        try:
            return self._read(name, 'serial') == serial(volume_id) and any(
                self._read(name, 'dev') == _number(loop)
                and os.path.exists(self._by_id(volume_id))
                for loop in _loops(file))
        except FileNotFoundError:
            return False

    def plug(self, volume_id, file, name):
        """Show the file as disk NAME, by the loop device it already has."""
        loops = _loops(file)
        loop = loops[0] if loops else _losetup('--show', '-f', file)[0]
        _link(loop, os.path.join(self.path, 'dev', name))
        _link(loop, self._by_id(volume_id))
        self._show(volume_id, loop, name)

    def unplug(self, volume_id, file, name):
        """Hide the disk; true if no server has the volume any more."""
        self._hide(name)
        for link in (self._by_id(volume_id),
                     os.path.join(self.path, 'dev', name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(link)
        if self._used_elsewhere(volume_id):
            return False
        for loop in _loops(file):
            _losetup('-d', loop)
        return True

    def resize(self, file, name):
        for loop in _loops(file):
            _losetup('-c', loop)
            self._write('sys/block/%s/size' % name, _sectors(loop))

    def _by_id(self, volume_id):
        return os.path.join(self.path, 'by-id', 'virtio-' + serial(volume_id))

    def _used_elsewhere(self, volume_id):
        return any(
            os.path.lexists(ServerDir(self.root, other)._by_id(volume_id))
            for other in os.listdir(self.root) if other != self.uuid)

    def _show(self, volume_id, loop, name):
        self._hide(name)
        staged = os.path.join(self.path, '.new-' + name)
        shutil.rmtree(staged, ignore_errors=True)
        os.mkdir(staged)
        for file, text in (
                ('serial', serial(volume_id)),  # the kernel adds no newline
                ('dev', _number(loop)),
                ('size', _sectors(loop))):
            with open(os.path.join(staged, file), 'w') as f:
                f.write(text)
        os.rename(staged, os.path.join(self.path, 'sys/block', name))

    def _hide(self, name):
        gone = os.path.join(self.path, '.old-' + name)
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(self.path, 'sys/block', name), gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _read(self, name, file):
        with open(os.path.join(self.path, 'sys/block', name, file)) as f:
            return f.read()

    def _write(self, name, text):
        staged = os.path.join(self.path, '.new-' + os.path.basename(name))
        with open(staged, 'w') as f:
            f.write(text)
        os.rename(staged, os.path.join(self.path, name))


def _link(target, link):
    """Make or replace a symlink, never showing none."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link + '.new')
    os.symlink(target, link + '.new')
    os.rename(link + '.new', link)


def _losetup(*args):
    return subprocess.run(('losetup',) + args, check=True, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE).stdout.split()


def _loops(file):
    return _losetup('-n', '-O', 'NAME', '-j', file)


def _number(loop):
    number = os.stat(loop).st_rdev
    return '%d:%d\n' % (os.major(number), os.minor(number))


def _sectors(loop):
    with open('/sys/class/block/%s/size' % os.path.basename(loop)) as f:
        return f.read()
