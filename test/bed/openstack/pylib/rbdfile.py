"""A Ceph image as a file, without a kernel module.

The storage daemon of QEMU opens the image through librbd, as QEMU does for a
guest, and shows it by FUSE. It watches the image while a server has it.

    ROOT/POOL/IMAGE        the image
    ROOT/POOL/IMAGE.pid    its daemon
    ROOT/POOL/IMAGE.qmp    and where it takes commands
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

ROOT = os.environ.get('BED_IMAGES', '')


def path(name):
    """The file of an image; Cinder names it POOL/IMAGE."""
    return os.path.join(ROOT, name)


def is_image(file):
    return bool(ROOT) and file.startswith(ROOT + '/')


def show(file):
    """Show the image, unless its daemon runs."""
    if _pid(file):
        return
    pool, image = file[len(ROOT) + 1:].split('/')
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, 'ab'):
        pass
    for left in (file + '.qmp', file + '.pid'):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)
    subprocess.run((
        'qemu-storage-daemon', '--daemonize', '--pidfile', file + '.pid',
        '--blockdev', json.dumps({
            'driver': 'rbd', 'node-name': 'image', 'pool': pool,
            'image': image, 'conf': os.environ['BED_CEPH_CONF'],
            'user': 'admin', 'discard': 'unmap'}),
        '--export', 'type=fuse,id=file,node-name=image,writable=on,'
        'mountpoint=' + file,
        '--chardev', 'socket,id=qmp,server=on,wait=off,path=' + file + '.qmp',
        '--monitor', 'chardev=qmp'), check=True)


def hide(file):
    pid = _pid(file)
    if pid:
        os.kill(pid, signal.SIGTERM)
        _wait('end of the daemon of ' + file, lambda: not _pid(file))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)


def grow(file, size):
    """Cinder has resized the image; the daemon learns it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(file + '.qmp')
        qmp = s.makefile('rw')
        qmp.readline()
        for command, arguments in (
                ('qmp_capabilities', {}),
                ('block_resize', {'node-name': 'image', 'size': size})):
            json.dump({'execute': command, 'arguments': arguments}, qmp)
            qmp.flush()
            answer = {}
            while not {'return', 'error'} & set(answer):  # else an event
                answer = json.loads(qmp.readline())
            if 'error' in answer:
                raise OSError('%s: %s' % (file, answer['error']))
    _wait('size of ' + file, lambda: os.stat(file).st_size == size)


def _pid(file):
    try:
        with open(file + '.pid') as f:
            pid = int(f.read())
        with open('/proc/%d/cmdline' % pid) as f:
            return pid if file + '.pid' in f.read() else None
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None


def _wait(what, ready, seconds=30):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError('no ' + what)
        time.sleep(0.1)
