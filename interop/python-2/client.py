"""The official Python SDK 2.x as a client."""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import checks

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


class Peer:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version

    async def list(self):
        tools = (await self.client.list_tools()).tools
        return [tool.name for tool in tools], [tool.name for tool in tools if tool.output_schema]

    async def call(self, tool, arguments, on_progress=None):
        result = await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        text = "".join(getattr(block, "text", "") for block in result.content)
        return checks.Reply(text, result.structured_content, bool(result.is_error))

    async def read(self, uri):
        if self.client.server_capabilities.resources is None:
            raise checks.Absent("the server declares no resources")
        return (await self.client.read_resource(uri)).contents[0].text


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


@asynccontextmanager
async def connect():
    revision, url, command = checks.arguments()
    mode = "legacy" if revision == "2025-11-25" else "auto"
    target = url or StdioServerParameters(command=command[0], args=command[1:])
    async with Client(target, mode=mode, elicitation_callback=answer) as client:
        yield Peer(client)


checks.main(connect)
