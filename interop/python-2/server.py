"""The official Python SDK 2.x as a server."""

import os
import sys
from typing import Annotated

from pydantic import BaseModel

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import serving

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ListRoots, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import Completion, CreateMessageResult, ListRootsResult, PromptReference
from mcp.types import SamplingMessage, TextContent

mcp = MCPServer("interop-python-2")
holding = serving.Hold()


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


async def name_of_user() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def product() -> Sample:
    question = TextContent(type="text", text="What is six times seven?")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=20)


async def places() -> ListRoots:
    return ListRoots()


@mcp.tool()
async def echo(text: str) -> str:
    return text


@mcp.tool()
async def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@mcp.tool()
async def count(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return "counted"


@mcp.tool()
async def fail() -> str:
    raise ToolError("failed on purpose")


@mcp.tool()
async def hold() -> str:
    await holding.run()
    return "never"


@mcp.tool()
async def was_cancelled() -> str:
    return holding.state


@mcp.tool()
async def ask(user: Annotated[Name, Resolve(name_of_user)]) -> str:
    return f"hello {user.name}"


@mcp.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(product)]) -> str:
    return f"said {answer.content.text}"


@mcp.tool()
async def ask_roots(answer: Annotated[ListRootsResult, Resolve(places)]) -> str:
    return " ".join(str(root.uri) for root in answer.roots)


@mcp.tool()
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated("note://one")
    await ctx.notify_tools_changed()
    return "touched"


@mcp.resource("note://one")
def one() -> str:
    return "the first note"


@mcp.resource("note://about/{name}")
def about(name: str) -> str:
    return f"a note about {name}"


@mcp.prompt()
def greet(name: str) -> str:
    return f"Greet {name}"


@mcp.completion()
async def complete(reference, argument, _context):
    if isinstance(reference, PromptReference) and argument.name == "name":
        names = [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]
        return Completion(values=names)
    return None


serving.main(lambda: mcp.run("stdio"), mcp.streamable_http_app)
