from placement import wsgi

application = wsgi.init_application()
