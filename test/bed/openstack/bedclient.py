"""The bed as its scripts see it: ports, secrets, and plain REST.

No client library on purpose: what the scripts send is what is read here.
"""
import json
import os
import time

import requests

HTTP = requests.Session()
HTTP.trust_env = False
BEHIND_TLS = ('keystone', 'nova', 'cinder')
# What the oldest release of ../clouds has.
VERSIONS = {'nova': 'compute 2.87', 'cinder': 'volume 3.62'}


class Refused(Exception):
    """An answer that was not among the expected ones."""


class Bed:
    """A bed's directory: what up.sh wrote there."""

    def __init__(self, directory):
        self.directory = directory
        with open(self.path('bed.json')) as f:
            self.settings = json.load(f)
        with open(self.path('state', 'passwords')) as f:
            self.secrets = dict(line.split('=', 1) for line in f.read().split())
        self.nova_zones = self.settings['nova_azs'].split()
        self.cinder_zones = self.settings['cinder_azs'].split()
        self.identity_url = self.url('keystone', '/v3')

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def url(self, service, path=''):
        return 'http://%s:%d%s' % (self.settings['address'], self.settings[service],
                                   path)

    def public_url(self, service, path=''):
        """What clients from outside use: with TLS where the bed has it."""
        if not self.settings['tls'] or service not in BEHIND_TLS:
            return self.url(service, path)
        return 'https://%s:%d%s' % (
            self.settings['address'],
            self.settings[service] + self.settings['tls_offset'], path)

    def login(self, user, project):
        return Client(self, {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': user, 'domain': {'id': 'default'},
                'password': self.secrets[user]}}},
            'scope': {'project': {'name': project,
                                  'domain': {'id': 'default'}}}})

    def login_credential(self, ident, secret):
        return Client(self, {'identity': {
            'methods': ['application_credential'],
            'application_credential': {'id': ident, 'secret': secret}}})


class Client:
    """A token and the calls made with it."""

    def __init__(self, bed, auth):
        answer = HTTP.post(bed.identity_url + '/auth/tokens',
                           json={'auth': auth})
        if answer.status_code != 201:
            raise Refused('no token: %d %s' % (answer.status_code, answer.text))
        token = answer.json()['token']
        self.token = answer.headers['X-Subject-Token']
        self.project_id = token['project']['id']
        self.user_id = token['user']['id']
        self.urls = {
            'keystone': bed.identity_url,
            'nova': bed.url('nova', '/v2.1'),
            'cinder': bed.url('cinder', '/v3/' + self.project_id),
            'glance': bed.url('glance', '/v2')}

    def send(self, method, service, path, **request):
        headers = request.setdefault('headers', {})
        headers['X-Auth-Token'] = self.token
        if service in VERSIONS:
            headers['OpenStack-API-Version'] = VERSIONS[service]
        return HTTP.request(method, self.urls[service] + path, **request)

    def __call__(self, method, service, path, body=None):
        """The decoded answer, None if it has no body; raises Refused."""
        answer = self.send(method, service, path, json=body)
        if not answer.ok:
            raise Refused('%s %s%s: %d %s' % (
                method, service, path, answer.status_code, answer.text[:500]))
        return answer.json() if answer.content else None


def wait(what, ready, seconds=300):
    """The first true value of ready(); a cloud that starts may refuse."""
    end = time.monotonic() + seconds * int(
        os.environ.get('BED_PATIENCE') or 1)
    last = ''
    while time.monotonic() < end:
        try:
            value = ready()
        except (requests.RequestException, Refused) as e:
            value, last = None, ': %s' % e
        if value:
            return value
        time.sleep(0.3)
    raise TimeoutError('no %s after %d s%s' % (what, seconds, last))
