"""Waits until the databases of OS_DATABASE__CONNECTION, or of the variables in the arguments, take statements of their user, for AWAIT_SECONDS (900) at most."""
import os
import sys
import time

import sqlalchemy

end = time.monotonic() + float(os.environ.get("AWAIT_SECONDS", "900"))
for variable in sys.argv[1:] or ["OS_DATABASE__CONNECTION"]:
    engine = sqlalchemy.create_engine(os.environ[variable])
    while True:
        try:
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text("SELECT 1"))
            break
        except sqlalchemy.exc.OperationalError as error:
            if time.monotonic() > end:
                sys.exit(f"the database takes no statements: {error.orig}")
            print("the database is awaited:", error.orig, flush=True)
            time.sleep(1)
