"""Requests to Keystone, and to other services with its tokens."""
import json
import sys
import urllib.error
import urllib.request

DEFAULT = {"id": "default"}


class Refused(Exception):
    """An answer of 400 and above."""

    def __init__(self, address, code, text):
        super().__init__(f"{address} answers {code}: {text}")
        self.code = code


class Session:
    """Requests with the token of a user."""

    def __init__(self, address, token=""):
        self.address, self.token = address.rstrip("/"), token

    def call(self, method, path, body=None, **headers):
        """The headers of the answer and its JSON; None for an answer without a body."""
        if self.token:
            headers.setdefault("X-Auth-Token", self.token)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, method=method, data=data, headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.headers, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise Refused(self.address + path, error.code, error.read(2000).decode(errors="replace")) from error
        except OSError as error:
            raise OSError(f"{self.address} does not answer: {error}") from error

    def login(self, user, password, project=None):
        """Gets a token by the password of a user of the default domain, for a project if one is named. Returns the description of the token."""
        identity = {"methods": ["password"], "password": {"user": {"name": user, "domain": DEFAULT, "password": password}}}
        scope = {"project": {"name": project, "domain": DEFAULT}} if project else "unscoped"
        headers, issued = self.call("POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}})
        self.token = headers["X-Subject-Token"]
        return issued["token"]


def run(work):
    """Runs a program: requests that fail are its last line."""
    try:
        work()
    except (Refused, OSError) as error:
        sys.exit(str(error))
