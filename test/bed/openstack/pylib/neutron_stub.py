#!/usr/bin/python3
"""As much of Neutron as Nova needs for servers without networks.

    neutron_stub.py ADDRESS PORT

Nova asks for a server's ports when it shows or deletes one. Lists are empty,
everything else is 404.
"""
import http.server
import json
import sys

LISTS = ('ports', 'networks', 'subnets', 'security-groups', 'extensions',
         'floatingips', 'routers', 'security-group-rules', 'quotas',
         'subnetpools', 'trunks', 'agents')
NOT_FOUND = {'NeutronError': {
    'type': 'NotFound', 'message': 'not in this stub', 'detail': ''}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        parts = self.path.split('?')[0].strip('/').split('/')
        if parts in ([''], ['v2.0']):
            return self._reply(200, {'versions': [self._version()]})
        name = parts[1].replace('.json', '') if len(parts) == 2 else ''
        if name in LISTS:
            return self._reply(200, {name.replace('-', '_'): []})
        return self._reply(404, NOT_FOUND)

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self._reply(404, NOT_FOUND)

    do_PUT = do_DELETE = do_POST

    def _version(self):
        href = 'http://%s/v2.0/' % self.headers.get('Host', sys.argv[1])
        return {'id': 'v2.0', 'status': 'CURRENT',
                'links': [{'rel': 'self', 'href': href}]}

    def _reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == '__main__':
    http.server.ThreadingHTTPServer(
        (sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
