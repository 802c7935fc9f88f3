"""Ends well when the database of OS_DATABASE__CONNECTION takes statements of its user."""
import os
import sys

import sqlalchemy

try:
    with sqlalchemy.create_engine(os.environ["OS_DATABASE__CONNECTION"], connect_args={"connect_timeout": 5}).connect() as connection:
        connection.execute(sqlalchemy.text("SELECT 1"))
except sqlalchemy.exc.OperationalError as error:
    sys.exit(f"the database is awaited: {error.orig}")
