"""The checks that a Python client runs against the server, the same for every SDK.

A client gives `run` an object with the revision that was agreed on, `declares(what)` (whether the
server declares `resources`, `prompts`, `completions`, `subscribe` or `changed`) and these coroutines:
`list()` (tool names, and the names of those with an output schema), `call(tool, arguments,
on_progress)` (a `Reply`), `read(uri)` (text), `templates()`, `prompts()` (names), `prompt(name,
arguments)` (text), `complete(prompt, argument, typed)` (values). `listen(uri)` and `changed()` are
context managers that listen and give a coroutine that waits for the next news.
"""

import json
import sys
import time
import traceback
from dataclasses import dataclass

import anyio

TOOLS = {"echo", "add", "count", "fail", "hold", "was_cancelled", "touch"} | {
    "ask",
    "ask_model",
    "ask_roots",
}
ONE_CHECK = 20
PATIENCE = 5
ROOT = "file:///home/ada"
PHRASE = "Grüße, 世界 ✓"


@dataclass
class Reply:
    text: str
    structured: object
    is_error: bool


class Absent(Exception):
    """The server does not declare what the check needs."""


def say(check, outcome, detail=""):
    line = json.dumps({"check": check, "outcome": outcome, "detail": detail}, ensure_ascii=False)
    print(line, flush=True)


def innermost(error):
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def run(peer):
    say("connect", "pass", peer.revision)
    for name, check in CHECKS.items():
        try:
            with anyio.fail_after(ONE_CHECK):
                detail = await check(peer)
            say(name, "pass", detail or "")
        except Absent as absent:
            say(name, "absent", str(absent))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            say(name, "fail", innermost(error))


async def check_list(peer):
    names, structured = await peer.list()
    assert set(names) == TOOLS, f"listed {sorted(names)}"
    assert "add" in structured, "`add` has no output schema"


async def check_call(peer):
    reply = await peer.call("echo", {"text": PHRASE})
    assert reply.text == PHRASE and not reply.is_error, f"got {reply}"


async def check_structured(peer):
    reply = await peer.call("add", {"a": 2, "b": 3})
    assert reply.structured == {"sum": 5}, f"got {reply}"


async def check_progress(peer):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total))

    reply = await peer.call("count", {}, on_progress)
    seen_at_end = list(seen)
    assert not reply.is_error, f"got {reply}"
    assert seen_at_end == [(1, 3), (2, 3), (3, 3)], f"saw {seen_at_end} before the result"


async def check_tool_error(peer):
    reply = await peer.call("fail", {})
    assert reply.is_error and "failed on purpose" in reply.text, f"got {reply}"


async def check_abandon(peer):
    async with anyio.create_task_group() as group:
        group.start_soon(peer.call, "hold", {})
        await until(peer, "holding")
        group.cancel_scope.cancel()
    await until(peer, "stopped")


async def until(peer, state):
    deadline = time.monotonic() + PATIENCE
    while True:
        reply = await peer.call("was_cancelled", {})
        if reply.text == state:
            return
        assert time.monotonic() < deadline, f"`hold` is {reply.text}, not {state}"


async def check_elicit(peer):
    reply = await peer.call("ask", {})
    assert reply.text == "hello Ada" and not reply.is_error, f"got {reply}"


async def check_sample(peer):
    reply = await peer.call("ask_model", {})
    assert reply.text == "said forty-two" and not reply.is_error, f"got {reply}"


async def check_roots(peer):
    reply = await peer.call("ask_roots", {})
    assert reply.text == ROOT and not reply.is_error, f"got {reply}"


async def check_resource(peer):
    declared(peer, "resources", "resources")
    text = await peer.read("note://one")
    assert text == "the first note", f"got {text!r}"


async def check_template(peer):
    declared(peer, "resources", "resources")
    templates = await peer.templates()
    assert "note://about/{name}" in templates, f"listed {templates}"
    text = await peer.read("note://about/ada")
    assert text == "a note about ada", f"got {text!r}"


async def check_prompt(peer):
    declared(peer, "prompts", "prompts")
    prompts = await peer.prompts()
    assert "greet" in prompts, f"listed {prompts}"
    text = await peer.prompt("greet", {"name": "Ada"})
    assert text == "Greet Ada", f"got {text!r}"


async def check_complete(peer):
    declared(peer, "completions", "completions")
    values = await peer.complete("greet", "name", "A")
    assert values == ["Ada", "Alan"], f"got {values}"


async def check_listen(peer):
    declared(peer, "subscribe", "subscriptions to resources")
    await heard(peer, peer.listen("note://one"), "updated note://one")


async def check_changed(peer):
    declared(peer, "changed", "changes of its tools")
    await heard(peer, peer.changed(), "tools changed")


async def heard(peer, listening, wanted):
    async with listening as following:
        await peer.call("touch", {})
        try:
            with anyio.fail_after(PATIENCE):
                news = await following()
        except TimeoutError:
            raise AssertionError("nothing was heard") from None
    assert news == wanted, f"heard {news}"


def declared(peer, what, name):
    if not peer.declares(what):
        raise Absent(f"the server declares no {name}")


CHECKS = {
    "list": check_list,
    "call": check_call,
    "structured": check_structured,
    "progress": check_progress,
    "tool-error": check_tool_error,
    "abandon": check_abandon,
    "elicit": check_elicit,
    "sample": check_sample,
    "roots": check_roots,
    "resource": check_resource,
    "template": check_template,
    "prompt": check_prompt,
    "complete": check_complete,
    "listen": check_listen,
    "changed": check_changed,
}


def arguments():
    """`[--revision R] (--url URL | --command WORD…)`"""
    words = sys.argv[1:]
    revision = None
    if words[:1] == ["--revision"]:
        revision, words = words[1], words[2:]
    if words[:1] == ["--url"] and len(words) == 2:
        return revision, words[1], None
    if words[:1] == ["--command"] and len(words) > 1:
        return revision, None, words[1:]
    sys.exit("usage: client.py [--revision R] (--url URL | --command WORD...)")


def main(connect_and_run):
    """Runs the whole conversation. What fails outside a check is the connection or its end."""
    connected = False

    async def whole():
        nonlocal connected
        with anyio.fail_after(60):
            async with connect_and_run() as peer:
                connected = True
                await run(peer)
                closing = time.monotonic()
        took = time.monotonic() - closing
        assert took < 5, f"closing took {took:.0f} s"
        say("shutdown", "pass")

    try:
        anyio.run(whole)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        say("shutdown" if connected else "connect", "fail", innermost(error))
