"""The official Python SDK 1.x as a server."""

import os
import sys

from pydantic import BaseModel

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import serving

from mcp.server.fastmcp import Context, FastMCP

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


@mcp.resource("note://one")
def one() -> str:
    return "the first note"


serving.main(lambda: mcp.run("stdio"), mcp.streamable_http_app)
