#!/usr/bin/python3
"""Fill the cloud. What exists stays as it is.

    seed.py identity DIRECTORY    users, services; clouds.yaml, cloud.conf
    seed.py content DIRECTORY     zones, types, quotas, servers
"""
import calendar
import hashlib
import os
import subprocess
import sys
import time

from bedclient import Bed, wait

ROLES = ('admin', 'member', 'reader', 'service', 'creator')
PROJECTS = ('admin', 'service', 'demo', 'other')
SERVICES = ('nova', 'placement', 'glance', 'cinder', 'neutron', 'barbican')
# cloud in clouds.yaml, user, project, role
PEOPLE = (
    ('lab-admin', 'admin', 'admin', 'admin'),
    ('lab-demo-admin', 'demo-admin', 'demo', 'admin'),
    ('lab-demo', 'demo', 'demo', 'member'),
    ('lab-reader', 'demo-reader', 'demo', 'reader'),
    ('lab-other', 'other', 'other', 'member'),
)
# type, name, service in bed.json, path
CATALOG = (
    ('identity', 'keystone', 'keystone', '/v3/'),
    ('compute', 'nova', 'nova', '/v2.1'),
    ('volumev3', 'cinderv3', 'cinder', '/v3/%(project_id)s'),
    ('block-storage', 'cinder', 'cinder', '/v3/%(project_id)s'),
    ('placement', 'placement', 'placement', ''),
    ('image', 'glance', 'glance', ''),
    ('network', 'neutron', 'neutron', ''),
)
KEY_MANAGER = ('key-manager', 'barbican', 'barbican', '')
VOLUME_TYPES = (
    ('standard', 'default type', {'volume_backend_name': 'standard'}),
    ('fast', 'second pool', {'volume_backend_name': 'fast',
                             'lab:tier': 'fast'}),
    ('multiattach', 'attach to several servers',
     {'volume_backend_name': 'standard', 'multiattach': '<is> True'}),
)
ENCRYPTED_TYPE = ('encrypted', 'LUKS by the hypervisor',
                  {'volume_backend_name': 'standard'})
ENCRYPTION = {'provider': 'luks', 'cipher': 'aes-xts-plain64',
              'key_size': 256, 'control_location': 'front-end'}
VOLUME_QUOTA = {
    'volumes': 300, 'gigabytes': 20000, 'snapshots': 200, 'backups': 50,
    'backup_gigabytes': 2000, 'groups': 20,
    'volumes_fast': 50, 'gigabytes_fast': 1000, 'snapshots_fast': 20}
SERVER_QUOTA = {'instances': 60, 'cores': 300, 'ram': 1228800}
# name, processors, MiB of memory, GiB of disk
FLAVORS = (('lab.small', 2, 4096, 20), ('lab.large', 8, 32768, 80))
GUEST_FLAVOR = ('lab.guest', 1, 512, 1)
# Without no_timer_check the kernel panics if QEMU gets no processor for a
# moment while the kernel tests its timer.
GUEST_CMDLINE = 'console=ttyS0 quiet panic=-1 no_timer_check'

PASSWORD_CLOUD = """  %s:
    region_name: RegionOne
    interface: public
    identity_api_version: 3
    volume_api_version: 3
    auth:
      auth_url: %s
      username: %s
      password: %s
      project_name: %s
      user_domain_name: Default
      project_domain_name: Default
"""
CREDENTIAL_CLOUD = """  lab-appcred:
    region_name: RegionOne
    interface: public
    identity_api_version: 3
    volume_api_version: 3
    auth_type: v3applicationcredential
    auth:
      auth_url: %s
      application_credential_id: %s
      application_credential_secret: %s
"""
CACERT = """    cacert: %s
"""
CLOUD_CONF = """[Global]
auth-url = %s
region = RegionOne
application-credential-id = %s
application-credential-secret = %s
"""
OPENRC = """export OS_AUTH_URL=%s
export OS_IDENTITY_API_VERSION=3
export OS_VOLUME_API_VERSION=3
export OS_REGION_NAME=RegionOne
export OS_INTERFACE=public
export OS_USERNAME=%s OS_PASSWORD=%s OS_PROJECT_NAME=%s
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default
"""


class Identity:
    """What Keystone holds, and the files that let others in."""

    def __init__(self, bed):
        self.bed = bed
        self.keys = has_keys(bed)
        self.admin = bed.login('admin', 'admin')

    def fill(self):
        roles = {r: self._ensure('role', r) for r in ROLES}
        projects = {p: self._ensure('project', p, domain_id='default')
                    for p in PROJECTS}
        members = [(s, 'service', r) for s in SERVICES
                   for r in ('admin', 'service')]
        members += [person[1:] for person in PEOPLE]
        if self.keys:
            members += [(user, project, 'creator')
                        for _, user, project, role in PEOPLE
                        if role == 'member']
        for user, project, role in members:
            ident = self._ensure('user', user, domain_id='default',
                                 password=self.bed.secrets[user])
            self.admin('PUT', 'keystone', '/projects/%s/users/%s/roles/%s' % (
                projects[project], ident, roles[role]))
        self._fill_catalog()
        self._write_files(self._credential())

    def _ensure(self, kind, name, **more):
        plural = '/%ss' % kind
        for have in self.admin('GET', 'keystone', plural)[kind + 's']:
            if have['name'] == name:
                return have['id']
        made = self.admin('POST', 'keystone', plural,
                          {kind: dict(name=name, **more)})
        return made[kind]['id']

    def _fill_catalog(self):
        services = {s['type']: s['id'] for s in
                    self.admin('GET', 'keystone', '/services')['services']}
        endpoints = {(e['service_id'], e['interface']): e for e in
                     self.admin('GET', 'keystone', '/endpoints')['endpoints']}
        for kind, name, service, path in CATALOG + (
                (KEY_MANAGER,) if self.keys else ()):
            ident = services.get(kind) or self.admin(
                'POST', 'keystone', '/services',
                {'service': {'type': kind, 'name': name}})['service']['id']
            for interface in ('public', 'internal', 'admin'):
                self._endpoint(endpoints, ident, interface,
                               self._url(interface, service, path))

    def _url(self, interface, service, path):
        if interface == 'public':
            return self.bed.public_url(service, path)
        return self.bed.url(service, path)

    def _endpoint(self, endpoints, ident, interface, url):
        have = endpoints.get((ident, interface))
        if not have:
            self.admin('POST', 'keystone', '/endpoints', {'endpoint': {
                'service_id': ident, 'interface': interface, 'url': url,
                'region_id': 'RegionOne'}})
        elif have['url'] != url:  # TLS was switched
            self.admin('PATCH', 'keystone', '/endpoints/' + have['id'],
                       {'endpoint': {'url': url}})

    def _credential(self):
        demo = self.bed.login('demo', 'demo')
        roles = ['member'] + (['creator'] if self.keys else [])
        path = '/users/%s/application_credentials' % demo.user_id
        for have in demo('GET', 'keystone', path)['application_credentials']:
            if have['name'] == 'csi':
                return have['id']
        return demo('POST', 'keystone', path, {'application_credential': {
            'name': 'csi', 'secret': self.bed.secrets['csi'],
            'roles': [{'name': role} for role in roles]}}
            )['application_credential']['id']

    def _write_files(self, credential):
        url, secrets = self.bed.public_url('keystone', '/v3'), self.bed.secrets
        yaml = conf = env = ''
        if self.bed.settings['tls']:
            ca = self.bed.settings['ca']
            yaml, conf = CACERT % ca, 'ca-file = %s\n' % ca
            env = 'export OS_CACERT=%s\n' % ca
        self._write('clouds.yaml', 'clouds:\n' + ''.join(
            PASSWORD_CLOUD % (cloud, url, user, secrets[user], project) + yaml
            for cloud, user, project, _ in PEOPLE) +
            CREDENTIAL_CLOUD % (url, credential, secrets['csi']) + yaml)
        self._write('cloud.conf', CLOUD_CONF % (
            url, credential, secrets['csi']) + conf)
        self._write('openrc', OPENRC % (
            url, 'demo', secrets['demo'], 'demo') + env)
        self._write('openrc-admin', OPENRC % (
            url, 'admin', secrets['admin'], 'admin') + env)

    def _write(self, name, text):
        path = self.bed.path(name)
        with open(path + '.new', 'w',
                  opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(text)
        os.rename(path + '.new', path)


class Content:
    """What the other services hold."""

    def __init__(self, bed):
        self.bed = bed
        self.admin = bed.login('admin', 'admin')
        self.demo = bed.login('demo', 'demo')

    def fill(self):
        self.guests = self.bed.settings['compute'] == 'libvirt'
        image = self._guest_image() if self.guests else self._image()
        self._volume_types()
        flavors = self._flavors()
        for service, quota in (('cinder', VOLUME_QUOTA),
                               ('nova', SERVER_QUOTA)):
            self.admin('PUT', service, '/os-quota-sets/' +
                       self.demo.project_id, {'quota_set': quota})
        wait('nova-compute', self._computes_up)
        self._compute_zones()
        self._servers(image, flavors[
            GUEST_FLAVOR[0] if self.guests else 'lab.small'])
        wait('server that is ACTIVE', self._servers_active)
        wait('cinder-volume', self._volumes_up)

    def _names(self, service, path, kind):
        return {x['name']: x['id'] for x in
                self.admin('GET', service, path)[kind]}

    def _image(self):
        have = self._names('glance', '/images?name=lab-node', 'images')
        if have:
            return have['lab-node']
        ident = self.admin('POST', 'glance', '/images', {
            'name': 'lab-node', 'disk_format': 'raw', 'min_disk': 1,
            'container_format': 'bare', 'visibility': 'public'})['id']
        self.admin.send('PUT', 'glance', '/images/%s/file' % ident,
                        data=bytes(1 << 20), headers={
                            'Content-Type': 'application/octet-stream'}
                        ).raise_for_status()
        return ident

    def _guest_image(self):
        """The image lab-node with its kernel; other programs, other servers."""
        with open(self.bed.path('guest', 'initramfs'), 'rb') as f:
            content = hashlib.sha256(f.read()).hexdigest()
        images = {i['name']: i for i in
                  self.admin('GET', 'glance', '/images')['images']}
        have = images.get('lab-node')
        if have and have['content'] == content:
            return have['id']
        self._delete_servers()
        for name in ('lab-node', 'lab-kernel', 'lab-ramdisk'):
            if name in images:
                self.admin('DELETE', 'glance', '/images/' + images[name]['id'])
        kernel = self._upload('lab-kernel', 'vmlinuz', 'aki', 'aki')
        ramdisk = self._upload('lab-ramdisk', 'initramfs', 'ari', 'ari')
        return self._upload(
            'lab-node', 'system.raw', 'raw', 'bare', kernel_id=kernel,
            ramdisk_id=ramdisk, os_command_line=GUEST_CMDLINE,
            hw_qemu_guest_agent='yes', content=content)

    def _upload(self, name, file, disk, container, **more):
        ident = self.admin('POST', 'glance', '/images', dict(
            name=name, disk_format=disk, container_format=container,
            visibility='public', **more))['id']
        with open(self.bed.path('guest', file), 'rb') as f:
            self.admin.send(
                'PUT', 'glance', '/images/%s/file' % ident, data=f,
                headers={'Content-Type': 'application/octet-stream'}
                ).raise_for_status()
        return ident

    def _delete_servers(self):
        def servers():
            return self.demo('GET', 'nova', '/servers')['servers']
        for server in servers():
            self.demo('DELETE', 'nova', '/servers/' + server['id'])
        wait('end of the servers', lambda: not servers())

    def _volume_types(self):
        have = self._names('cinder', '/types?is_public=None', 'volume_types')
        for name, description, specs in VOLUME_TYPES:
            if name not in have:
                self.admin('POST', 'cinder', '/types', {'volume_type': {
                    'name': name, 'description': description,
                    'extra_specs': specs}})
        if has_keys(self.bed) and ENCRYPTED_TYPE[0] not in have:
            self._encrypted_type(*ENCRYPTED_TYPE)
        if 'lab-group' not in self._names(
                'cinder', '/group_types', 'group_types'):
            self.admin('POST', 'cinder', '/group_types', {'group_type': {
                'name': 'lab-group', 'description': 'generic volume groups'}})

    def _encrypted_type(self, name, description, specs):
        ident = self.admin('POST', 'cinder', '/types', {'volume_type': {
            'name': name, 'description': description,
            'extra_specs': specs}})['volume_type']['id']
        self.admin('POST', 'cinder', '/types/%s/encryption' % ident,
                   {'encryption': ENCRYPTION})

    def _flavors(self):
        have = self._names('nova', '/flavors', 'flavors')
        for name, vcpus, ram, disk in FLAVORS + (GUEST_FLAVOR,):
            if name not in have:
                have[name] = self.admin('POST', 'nova', '/flavors', {'flavor': {
                    'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}}
                    )['flavor']['id']
        return have

    def _compute_zones(self):
        mapped = self.bed.path('state', 'computes-mapped')
        if not os.path.exists(mapped):
            wait('hosts of Nova', self._hosts_mapped)
            with open(mapped, 'w'):
                pass
        have = {a['name']: a for a in
                self.admin('GET', 'nova', '/os-aggregates')['aggregates']}
        for zone in self.bed.nova_zones:
            aggregate = have.get('agg-' + zone) or self.admin(
                'POST', 'nova', '/os-aggregates', {'aggregate': {
                    'name': 'agg-' + zone, 'availability_zone': zone}}
                )['aggregate']
            if 'compute-' + zone not in aggregate.get('hosts', []):
                self.admin('POST', 'nova',
                           '/os-aggregates/%s/action' % aggregate['id'],
                           {'add_host': {'host': 'compute-' + zone}})

    def _hosts_mapped(self):
        # A compute may report before it has a record of its hypervisor.
        with open(self.bed.path('log', 'discover.log'), 'a') as log:
            subprocess.run(
                ['nova-manage', '--config-file',
                 self.bed.path('etc', 'nova', 'nova.conf'),
                 'cell_v2', 'discover_hosts'],
                check=True, stdout=log, stderr=log)
        return {h['service']['host'] for h in self.admin(
            'GET', 'nova', '/os-hypervisors/detail')['hypervisors']} >= {
                'compute-' + z for z in self.bed.nova_zones}

    def _servers(self, image, flavor):
        have = {s['name'] for s in
                self.demo('GET', 'nova', '/servers')['servers']}
        for zone in self.bed.nova_zones:
            for i in range(1, self.bed.settings['nodes_per_az'] + 1):
                name = 'node-' + zone + ('' if i == 1 else '-%d' % i)
                if name not in have:
                    self.demo('POST', 'nova', '/servers', {'server': {
                        'name': name, 'availability_zone': zone,
                        'imageRef': image, 'flavorRef': flavor,
                        'networks': 'none',
                        'metadata': {'role': 'k8s-node'}}})

    def _servers_active(self):
        servers = self.demo('GET', 'nova', '/servers/detail')['servers']
        nodes = [s for s in servers if s['name'].startswith('node-')]
        for node in nodes:
            if node['status'] == 'ERROR':
                raise RuntimeError('server %s: %s' % (
                    node['name'], node.get('fault')))
        return all(n['status'] == 'ACTIVE' for n in nodes)

    def _reporting(self, service):
        """Who reported since its daemon, known by its file in run/, began.

        'up' alone stays true for a minute after a daemon has stopped.
        """
        return {(s['binary'], s['host']) for s in
                self.admin('GET', service, '/os-services')['services']
                if s['state'] == 'up' and s['updated_at'] and
                _seconds(s['updated_at']) > self._started(s)}

    def _started(self, service):
        name = service['binary']
        if name == 'nova-compute':
            name += service['host'].removeprefix('compute')
        return os.path.getmtime(self.bed.path('run', name + '.pid'))

    def _computes_up(self):
        return self._reporting('nova') >= {
            ('nova-compute', 'compute-' + z) for z in self.bed.nova_zones}

    def _volumes_up(self):
        pools = self.admin('GET', 'cinder',
                           '/scheduler-stats/get_pools')['pools']
        return (len(pools) >= 2 * len(self.bed.cinder_zones) and
                self._reporting('cinder') >= {('cinder-backup', 'lab')} | {
                    ('cinder-volume', 'lab@backend-' + z)
                    for z in self.bed.cinder_zones})


def has_keys(bed):
    """As has_barbican of lib/barbican.sh."""
    return bed.settings['compute'] == 'libvirt'


def _seconds(timestamp):
    return calendar.timegm(time.strptime(timestamp[:19], '%Y-%m-%dT%H:%M:%S'))


def main():
    stage, directory = sys.argv[1:]
    {'identity': Identity, 'content': Content}[stage](Bed(directory)).fill()


if __name__ == '__main__':
    main()
