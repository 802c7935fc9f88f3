import sys

from keystone.server import wsgi

sys.argv = ["keystone"]  # uWSGI's own arguments are none of Keystone's
application = wsgi.initialize_public_application()
