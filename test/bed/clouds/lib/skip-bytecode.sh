#!/bin/sh
# A hook of mmdebstrap: packages of Python get no byte code when they are installed. To compile all of it takes longer than the
# rest, and a service imports a small part.
#
#   skip-bytecode.sh ROOT
set -eu
chroot "$1" dpkg-divert --quiet --local --rename --add /usr/bin/py3compile
ln -s /bin/true "$1/usr/bin/py3compile"
