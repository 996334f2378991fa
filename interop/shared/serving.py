"""What the Python servers share: the state of `hold`, the command line, the socket, the log."""

import socket
import sys

import anyio
import uvicorn


class Hold:
    state = "idle"

    async def run(self):
        self.state = "holding"
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.state = "stopped"
            raise


def main(run_stdio, app):
    """`--stdio LOG`: serve, and write to the log that it started, and that it ended by itself.
    `--http`: print the URL."""
    words = sys.argv[1:]
    if words[:1] == ["--stdio"] and len(words) == 2:
        note(words[1], "started")
        run_stdio()
        note(words[1], "ended")
    elif words == ["--http"]:
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        # Whoever reads the address may connect at once.
        bound.listen()
        print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(app(), log_level="warning")
        uvicorn.Server(config).run(sockets=[bound])
    else:
        sys.exit("usage: server.py --stdio LOG | --http")


def note(log, line):
    with open(log, "a") as file:
        file.write(f"{line}\n")
