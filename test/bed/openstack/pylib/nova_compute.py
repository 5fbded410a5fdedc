#!/usr/bin/python3
"""nova-compute that finds bedvirt: Nova loads drivers from nova.virt only."""
import os
import sys

from nova.cmd.compute import main
import nova.virt

nova.virt.__path__.append(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), 'nova_virt'))

if __name__ == '__main__':
    sys.argv[0] = 'nova-compute'
    sys.exit(main())
