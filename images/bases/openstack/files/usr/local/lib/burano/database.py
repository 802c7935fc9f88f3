"""Waits until the database of OS_DATABASE__CONNECTION takes statements of its user, for AWAIT_SECONDS (900) at most."""
import os
import sys
import time

import sqlalchemy

end = time.monotonic() + float(os.environ.get("AWAIT_SECONDS", "900"))
engine = sqlalchemy.create_engine(os.environ["OS_DATABASE__CONNECTION"])
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
