#!/usr/bin/python3
"""Show that what README.md promises of a running bed is so.

    check.py [DIRECTORY]    default $OPENSTACK_BED or /tmp/openstack-bed

Makes volumes and application credentials of its own and removes them.
"""
import contextlib
import os
import sys
import tempfile
import urllib.request

from bedclient import Bed, Refused, wait

GIB = 1 << 30
RULE = {'service': 'volumev3', 'method': 'GET', 'path': '/v3/**/volumes'}


def equal(what, want, got):
    if want != got:
        raise SystemExit('%s: want %r, got %r' % (what, want, got))
    print('%-58s %s' % (what, str(got).rstrip()))


class Disks:
    """One server's disks as its directory shows them."""

    def __init__(self, bed, server):
        self.path = bed.path('servers', 'by-name', server)

    def find(self, ident):
        """The name of the disk with a volume's serial; None if there is none."""
        block = os.path.join(self.path, 'sys', 'block')
        for name in os.listdir(block):
            if self.attribute(name, 'serial') == ident[:20]:
                return name
        return None

    def attribute(self, name, attribute):
        with open(os.path.join(self.path, 'sys', 'block', name, attribute)) as f:
            return f.read()

    def device(self, name):
        return os.path.join(self.path, 'dev', name)

    def has_link(self, ident):
        return os.path.lexists(
            os.path.join(self.path, 'by-id', 'virtio-' + ident[:20]))


@contextlib.contextmanager
def volume(demo, kind):
    body = {'name': 'bed-check', 'size': 1, 'volume_type': kind}
    ident = demo('POST', 'cinder', '/volumes', {'volume': body})['volume']['id']
    try:
        wait_status(demo, ident, 'available')
        yield ident
    finally:
        demo('DELETE', 'cinder', '/volumes/' + ident)
        wait('end of volume ' + ident, lambda: demo.send(
            'GET', 'cinder', '/volumes/' + ident).status_code == 404)


def wait_status(demo, ident, status):
    wait('volume %s that is %s' % (ident, status), lambda: demo(
        'GET', 'cinder', '/volumes/' + ident)['volume']['status'] == status)


def detach(demo, server, ident):
    path = '/servers/%s/os-volume_attachments/%s' % (server, ident)
    demo('DELETE', 'nova', path)
    wait('detach of volume ' + ident,
         lambda: demo.send('GET', 'nova', path).status_code == 404)


@contextlib.contextmanager
def attached(demo, server, ident, by=None):
    path = '/servers/%s/os-volume_attachments' % server
    (by or demo)('POST', 'nova', path,
                 {'volumeAttachment': {'volumeId': ident}})
    try:
        wait_status(demo, ident, 'in-use')
        yield
    finally:
        detach(demo, server, ident)


def check_disk(bed, demo, server):
    disks = Disks(bed, 'node-az1')
    with volume(demo, 'standard') as ident:
        with attached(demo, server, ident):
            name = disks.find(ident)
            number = os.stat(disks.device(name)).st_rdev
            equal('attached: dev of ' + name,
                  '%d:%d\n' % (os.major(number), os.minor(number)),
                  disks.attribute(name, 'dev'))
            equal('attached: size', '%d\n' % (GIB // 512),
                  disks.attribute(name, 'size'))
            equal('attached: link in by-id', True, disks.has_link(ident))
            demo('POST', 'cinder', '/volumes/%s/action' % ident,
                 {'os-extend': {'new_size': 2}})
            wait('larger disk', lambda: disks.attribute(name, 'size') ==
                 '%d\n' % (2 * GIB // 512))
            with open(disks.device(name), 'rb') as f:
                equal('extended: bytes of the device', 2 * GIB,
                      f.seek(0, os.SEEK_END))
        equal('detached: disk', None, disks.find(ident))
        equal('detached: link in by-id', False, disks.has_link(ident))
        wait_status(demo, ident, 'available')


def check_shared_disk(bed, demo, servers):
    with volume(demo, 'multiattach') as ident:
        with contextlib.ExitStack() as stack:
            for server in servers.values():
                stack.enter_context(attached(demo, server, ident))
            numbers = []
            for name in servers:
                disks = Disks(bed, name)
                numbers.append(disks.attribute(disks.find(ident), 'dev'))
            equal('attached to two servers: one device', 1, len(set(numbers)))
        wait_status(demo, ident, 'available')


@contextlib.contextmanager
def credential(bed, demo, rules):
    path = '/users/%s/application_credentials' % demo.user_id
    made = demo('POST', 'keystone', path, {'application_credential': {
        'name': 'bed-check', 'access_rules': rules}})['application_credential']
    try:
        yield bed.login_credential(made['id'], made['secret'])
    finally:
        demo('DELETE', 'keystone', path + '/' + made['id'])
        for rule in made['access_rules']:
            demo('DELETE', 'keystone', '/users/%s/access_rules/%s' % (
                demo.user_id, rule['id']))


def check_access_rules(bed, demo, server):
    named = {'volume': {'name': 'bed-check', 'size': 1}}
    with credential(bed, demo, [RULE]) as client:
        for service, method, path, status in (
                ('cinder', 'GET', '/volumes', 200),
                ('cinder', 'GET', '/volumes?limit=1', 200),
                ('cinder', 'GET', '/volumes/detail', 401),
                ('cinder', 'POST', '/volumes', 401),
                ('cinder', 'GET', '/types', 401),
                ('nova', 'GET', '/servers', 401),
                ('glance', 'GET', '/images', 401),
                ('keystone', 'GET', '/auth/catalog', 200)):
            body = named if method == 'POST' else None
            equal('by rule: %s %s %s' % (service, method, path), status,
                  client.send(method, service, path, json=body).status_code)
    alias = dict(RULE, service='block-storage')
    with credential(bed, demo, [alias]) as client:
        equal('a rule for block-storage opens nothing', 401,
              client.send('GET', 'cinder', '/volumes').status_code)
    attach = {'service': 'compute', 'method': 'POST',
              'path': '/v2.1/servers/*/os-volume_attachments'}
    with volume(demo, 'standard') as ident, credential(
            bed, demo, [attach]) as client:
        with attached(demo, server, ident, by=client):
            print('by rule: an attach, for which Nova asks Cinder')
        wait_status(demo, ident, 'available')


def check_metadata(bed, server):
    url = bed.url('metadata_proxy',
                  '/node-az1/openstack/latest/meta_data.json')
    with urllib.request.urlopen(url) as answer:
        equal('metadata has the server', True, server in answer.read().decode())


def check_wrong_password(bed):
    bed.secrets['demo'] += 'x'
    try:
        bed.login('demo', 'demo')
    except Refused as e:
        equal('a wrong password is refused', True, ' 401 ' in str(e))
    else:
        raise SystemExit('a wrong password was accepted')


def main():
    directory = (sys.argv[1:] or [os.environ.get('OPENSTACK_BED') or
                 os.path.join(tempfile.gettempdir(), 'openstack-bed')])[0]
    bed = Bed(directory)
    demo = bed.login('demo', 'demo')
    servers = {s['name']: s['id'] for s in
               demo('GET', 'nova', '/servers')['servers']}
    check_metadata(bed, servers['node-az1'])
    check_disk(bed, demo, servers['node-az1'])
    check_shared_disk(
        bed, demo, {n: servers[n] for n in ('node-az1', 'node-az2')})
    check_access_rules(bed, demo, servers['node-az1'])
    check_wrong_password(bed)


if __name__ == '__main__':
    main()
