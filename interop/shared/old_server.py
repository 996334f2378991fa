"""The official Python SDK of 2024-11-05 as a server over stdio, with one tool."""

import sys

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import TextContent, Tool

server = Server("interop-python-old")


@server.list_tools()
async def list_tools():
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    return [Tool(name="echo", description="Returns the text.", inputSchema=schema)]


@server.call_tool()
async def call_tool(name, arguments):
    if name != "echo":
        raise ValueError(f"there is no tool `{name}`")
    return [TextContent(type="text", text=arguments["text"])]


async def serve():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def note(log, line):
    with open(log, "a") as file:
        file.write(f"{line}\n")


def main():
    """`--stdio LOG`: serve, and write to the log that it started, and that it ended by itself."""
    words = sys.argv[1:]
    if words[:1] != ["--stdio"] or len(words) != 2:
        sys.exit("usage: old_server.py --stdio LOG")
    note(words[1], "started")
    anyio.run(serve)
    note(words[1], "ended")


main()
