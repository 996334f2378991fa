"""What a Python client checks that logs in to a protected server, the same for every SDK.

A client gives `main` a function that is given a URL, a `Person` and perhaps the name of a client that
is known to the provider, connects and logs in if it has to, and yields an object with the revision that was agreed on, `list()` (tool names) and `call(tool,
arguments)` (text).
"""

import os
import ssl
import sys
import time
import traceback
from urllib.parse import parse_qs, urljoin, urlparse

import anyio
from checks import PHRASE, arguments, innermost, say

ONE_CHECK = 20

# After that a token of the server with brief ones has ended, in seconds.
BRIEF = 4


# A client that the provider knows, and holds to nothing.
VISITOR = "a visitor"


def trust():
    """Trusts the authority that vouches for everyone here."""
    return ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])


class Storage:
    """What an SDK remembers."""

    def __init__(self, client=None):
        self.tokens = None
        self.client = client

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Person:
    """Someone before a browser. What they are shown, they agree to."""

    def __init__(self, browser, redirect_uri):
        self.browser = browser
        self.redirect_uri = redirect_uri
        self.logins = 0
        self.answered = {}

    async def open(self, url):
        """Follows redirects until one leads back to the client."""
        self.logins += 1
        async with self.browser.AsyncClient(verify=trust()) as browser:
            for _ in range(10):
                response = await browser.get(url)
                assert response.is_redirect, f"{urlparse(url).path}: {response.status_code} {response.text}"
                url = urljoin(url, response.headers["location"])
                if url.startswith(self.redirect_uri):
                    self.answered = {name: values[0] for name, values in parse_qs(urlparse(url).query).items()}
                    return
        raise AssertionError("the login has too many redirects")

    def answer(self):
        """What the client was told, which has to be good news."""
        assert "code" in self.answered, f"the login is refused: {self.answered.get('error_description')}"
        return self.answered


async def check_list(peer):
    names = await peer.list()
    assert set(names) == {"echo", "whoami"}, f"listed {sorted(names)}"


async def check_call(peer):
    text = await peer.call("echo", {"text": PHRASE})
    assert text == PHRASE, f"got {text}"
    text = await peer.call("whoami", {})
    assert text.startswith("ada, with "), f"got {text}"


async def check_step_up(connect, url, person):
    """What not everyone may do who is logged in."""
    async with connect(url, person, VISITOR) as peer:
        for _ in range(2):
            text = await peer.call("write", {"text": PHRASE})
            assert text == PHRASE, f"got {text}"
        assert person.logins == 2, f"{person.logins} logins"


async def check_renew(connect, url, person):
    """With a server whose tokens end soon."""
    async with connect(url.removesuffix("/mcp") + "/brief", person) as peer:
        await peer.call("echo", {"text": PHRASE})
        await anyio.sleep(BRIEF)
        text = await peer.call("echo", {"text": PHRASE})
        assert text == PHRASE, f"got {text}"
        assert person.logins == 1, f"{person.logins} logins"


# In a connection that is there, and in one of their own.
CHECKS = {"list": check_list, "call": check_call}
OWN_CHECKS = {"step-up": check_step_up, "renew": check_renew}


async def tried(name, check):
    try:
        with anyio.fail_after(ONE_CHECK):
            await check
        say(name, "pass")
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        say(name, "fail", innermost(error))


def main(connect, browser, redirect_uri):
    """Runs the whole conversation. What fails outside a check is the connection or its end."""
    _revision, url, _command = arguments()
    connected = False

    async def whole():
        nonlocal connected
        person = Person(browser, redirect_uri)
        with anyio.fail_after(60):
            async with connect(url, person) as peer:
                assert person.logins == 1, f"{person.logins} logins"
                connected = True
                say("connect", "pass", peer.revision)
                for name, check in CHECKS.items():
                    await tried(name, check(peer))
                closing = time.monotonic()
        took = time.monotonic() - closing
        assert took < 5, f"closing took {took:.0f} s"
        say("shutdown", "pass")
        for name, check in OWN_CHECKS.items():
            await tried(name, check(connect, url, Person(browser, redirect_uri)))

    try:
        anyio.run(whole)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        say("shutdown" if connected else "connect", "fail", innermost(error))
