import sys

from glance.common import wsgi_app

sys.argv = ["glance-api"]  # uWSGI's own arguments are none of Glance's
application = wsgi_app.init_app()
