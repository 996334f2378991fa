"""The official Python SDK 1.x as a client."""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import checks

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, PromptReference
from mcp.types import ResourceUpdatedNotification, Root, ServerNotification, TextContent
from mcp.types import ToolListChangedNotification


class Peer:
    def __init__(self, session, opened, news):
        self.session = session
        self.revision = opened.protocolVersion
        self.capabilities = opened.capabilities
        self.news = news

    def declares(self, what):
        has = self.capabilities
        if what == "subscribe":
            return has.resources is not None and has.resources.subscribe
        if what == "changed":
            return has.tools is not None and has.tools.listChanged
        return getattr(has, what) is not None

    async def list(self):
        tools = (await self.session.list_tools()).tools
        return [tool.name for tool in tools], [tool.name for tool in tools if tool.outputSchema]

    async def call(self, tool, arguments, on_progress=None):
        result = await self.session.call_tool(tool, arguments, progress_callback=on_progress)
        text = "".join(getattr(block, "text", "") for block in result.content)
        return checks.Reply(text, result.structuredContent, bool(result.isError))

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def templates(self):
        listed = await self.session.list_resource_templates()
        return [template.uriTemplate for template in listed.resourceTemplates]

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, typed):
        reference = PromptReference(type="ref/prompt", name=prompt)
        found = await self.session.complete(reference, {"name": argument, "value": typed})
        return found.completion.values

    @asynccontextmanager
    async def listen(self, uri):
        await self.session.subscribe_resource(uri)
        yield lambda: self.news.next("updated")
        await self.session.unsubscribe_resource(uri)

    @asynccontextmanager
    async def changed(self):
        yield lambda: self.news.next("tools")


class News:
    """What the server says by itself."""

    def __init__(self):
        self.said, self.heard = anyio.create_memory_object_stream(100)

    async def __call__(self, message):
        if not isinstance(message, ServerNotification):
            return
        if isinstance(message.root, ResourceUpdatedNotification):
            self.said.send_nowait(f"updated {message.root.params.uri}")
        if isinstance(message.root, ToolListChangedNotification):
            self.said.send_nowait("tools changed")

    async def next(self, about):
        while True:
            said = await self.heard.receive()
            if said.startswith(about):
                return said


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


async def think(_context, _params):
    said = TextContent(type="text", text="forty-two")
    return CreateMessageResult(role="assistant", content=said, model="a-model")


async def roots(_context):
    return ListRootsResult(roots=[Root(uri=checks.ROOT)])


@asynccontextmanager
async def connect():
    _revision, url, command = checks.arguments()
    if url:
        transport = streamable_http_client(url)
    else:
        transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    news = News()
    callbacks = {
        "elicitation_callback": answer,
        "sampling_callback": think,
        "list_roots_callback": roots,
        "message_handler": news,
    }
    async with transport as streams:
        async with ClientSession(streams[0], streams[1], **callbacks) as session:
            yield Peer(session, await session.initialize(), news)


checks.main(connect)
