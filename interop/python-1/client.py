"""The official Python SDK 1.x as a client."""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import checks

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


class Peer:
    def __init__(self, session, opened):
        self.session = session
        self.revision = opened.protocolVersion
        self.capabilities = opened.capabilities

    async def list(self):
        tools = (await self.session.list_tools()).tools
        return [tool.name for tool in tools], [tool.name for tool in tools if tool.outputSchema]

    async def call(self, tool, arguments, on_progress=None):
        result = await self.session.call_tool(tool, arguments, progress_callback=on_progress)
        text = "".join(getattr(block, "text", "") for block in result.content)
        return checks.Reply(text, result.structuredContent, bool(result.isError))

    async def read(self, uri):
        if self.capabilities.resources is None:
            raise checks.Absent("the server declares no resources")
        return (await self.session.read_resource(uri)).contents[0].text


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


@asynccontextmanager
async def connect():
    _revision, url, command = checks.arguments()
    if url:
        transport = streamable_http_client(url)
    else:
        transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    async with transport as streams:
        async with ClientSession(streams[0], streams[1], elicitation_callback=answer) as session:
            yield Peer(session, await session.initialize())


checks.main(connect)
