"""The official Python SDK 2.x as a client."""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import checks

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, PromptReference
from mcp.types import ResourceUpdatedNotification, Root, TextContent, ToolListChangedNotification


class Peer:
    def __init__(self, client, news):
        self.client = client
        self.revision = client.protocol_version
        self.news = news

    def declares(self, what):
        has = self.client.server_capabilities
        if what == "subscribe":
            return has.resources is not None and has.resources.subscribe
        if what == "changed":
            return has.tools is not None and has.tools.list_changed
        return getattr(has, what) is not None

    async def list(self):
        tools = (await self.client.list_tools()).tools
        return [tool.name for tool in tools], [tool.name for tool in tools if tool.output_schema]

    async def call(self, tool, arguments, on_progress=None):
        result = await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        text = "".join(getattr(block, "text", "") for block in result.content)
        return checks.Reply(text, result.structured_content, bool(result.is_error))

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def templates(self):
        listed = await self.client.list_resource_templates()
        return [template.uri_template for template in listed.resource_templates]

    async def prompts(self):
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt, argument, typed):
        reference = PromptReference(type="ref/prompt", name=prompt)
        found = await self.client.complete(reference, {"name": argument, "value": typed})
        return found.completion.values

    @asynccontextmanager
    async def listen(self, uri):
        if self.revision == LEGACY:
            await self.client.subscribe_resource(uri)
            yield lambda: self.news.next("updated")
            await self.client.unsubscribe_resource(uri)
        else:
            async with self.client.listen(resource_subscriptions=[uri]) as stream:
                yield lambda: following(stream)

    @asynccontextmanager
    async def changed(self):
        if self.revision == LEGACY:
            yield lambda: self.news.next("tools")
        else:
            async with self.client.listen(tools_list_changed=True) as stream:
                yield lambda: following(stream)


LEGACY = "2025-11-25"


async def following(stream):
    async for event in stream:
        if isinstance(event, ResourceUpdated):
            return f"updated {event.uri}"
        return "tools changed" if isinstance(event, ToolsListChanged) else repr(event)
    return "the end of the stream"


class News:
    """What a legacy server says by itself."""

    def __init__(self):
        self.said, self.heard = anyio.create_memory_object_stream(100)

    async def __call__(self, message):
        if isinstance(message, ResourceUpdatedNotification):
            self.said.send_nowait(f"updated {message.params.uri}")
        if isinstance(message, ToolListChangedNotification):
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
    revision, url, command = checks.arguments()
    mode = "legacy" if revision == LEGACY else "auto"
    target = url or StdioServerParameters(command=command[0], args=command[1:])
    news = News()
    callbacks = {
        "elicitation_callback": answer,
        "sampling_callback": think,
        "list_roots_callback": roots,
        "message_handler": news,
    }
    async with Client(target, mode=mode, **callbacks) as client:
        yield Peer(client, news)


checks.main(connect)
