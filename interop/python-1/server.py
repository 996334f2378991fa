"""The official Python SDK 1.x as a server."""

import os
import sys

from pydantic import BaseModel

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import serving

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, PromptReference, SamplingMessage, TextContent

mcp = FastMCP("interop-python-1")
holding = serving.Hold()


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


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
    raise ValueError("failed on purpose")


@mcp.tool()
async def hold() -> str:
    await holding.run()
    return "never"


@mcp.tool()
async def was_cancelled() -> str:
    return holding.state


@mcp.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action


@mcp.tool()
async def ask_model(ctx: Context) -> str:
    question = TextContent(type="text", text="What is six times seven?")
    message = SamplingMessage(role="user", content=question)
    # Named, so that over HTTP the question takes the stream of this call.
    answer = await ctx.session.create_message(
        [message], max_tokens=20, related_request_id=ctx.request_id
    )
    return f"said {answer.content.text}"


@mcp.tool()
async def ask_roots(ctx: Context) -> str:
    places = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in places.roots)


@mcp.tool()
async def touch(ctx: Context) -> str:
    await ctx.session.send_resource_updated("note://one")
    await ctx.session.send_tool_list_changed()
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
