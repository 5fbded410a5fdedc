#!/usr/bin/python3
"""Neutron's metadata agent, with the server's name in the path.

    metadata_proxy.py DIRECTORY

    GET http://ADDRESS:8780/NAME/openstack/latest/meta_data.json

The real agent knows the server by the address that asks. This one looks the
name up in DIRECTORY/servers/by-name; both then ask Nova with signed headers.
"""
import hashlib
import hmac
import http.client
import http.server
import json
import os
import sys

DIRECTORY = sys.argv[1]


def read_secret():
    with open(os.path.join(DIRECTORY, 'state', 'passwords')) as f:
        return dict(line.split('=', 1) for line in f.read().split())['metadata']


def read_ports():
    with open(os.path.join(DIRECTORY, 'bed.json')) as f:
        settings = json.load(f)
    return (settings['address'], settings['metadata_proxy'],
            settings['metadata'])


ADDRESS, PORT, NOVA_PORT = read_ports()
SECRET = read_secret().encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name, _, path = self.path.lstrip('/').partition('/')
        try:
            server = self._server(name)
        except OSError:
            self.send_error(404, 'no such server')
            return
        nova = http.client.HTTPConnection(ADDRESS, NOVA_PORT, timeout=30)
        nova.request('GET', '/' + path, headers={
            'X-Instance-ID': server['uuid'],
            'X-Tenant-ID': server['project_id'],
            'X-Forwarded-For': '192.0.2.10',
            'X-Instance-ID-Signature': hmac.new(
                SECRET, server['uuid'].encode(), hashlib.sha256).hexdigest()})
        answer = nova.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        self.send_header('Content-Type', answer.getheader('Content-Type', ''))
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def _server(name):
        with open(os.path.join(
                DIRECTORY, 'servers', 'by-name', os.path.basename(name),
                'config-drive/openstack/latest/meta_data.json')) as f:
            return json.load(f)


if __name__ == '__main__':
    http.server.ThreadingHTTPServer(
        (ADDRESS, PORT), Handler).serve_forever()
