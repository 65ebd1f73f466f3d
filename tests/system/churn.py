"""Makes and removes a file of a temporary name, again and again, until the mount is gone: churn.py PATH."""
import os
import sys

try:
    while True:
        os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
        os.unlink(sys.argv[1])
except OSError:
    pass
