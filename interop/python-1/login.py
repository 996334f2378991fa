"""The official Python SDK 1.x as a client that logs in.

It does not say in its registration what kind of application it is, so a provider takes it for one on
the web, whose answers to logins go to a page.
"""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import login_checks

import httpx
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

REDIRECT = "https://client.example/callback"


class Peer:
    def __init__(self, session, opened):
        self.session = session
        self.revision = opened.protocolVersion

    async def list(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, tool, arguments):
        result = await self.session.call_tool(tool, arguments)
        return "".join(getattr(block, "text", "") for block in result.content)


@asynccontextmanager
async def connect(url, person, client_id=None):
    async def answer():
        return person.answer()["code"], person.answer()["state"]

    known = None
    if client_id:
        known = OAuthClientInformationFull(
            client_id=client_id, redirect_uris=[REDIRECT], token_endpoint_auth_method="none"
        )
    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(client_name="python-1", redirect_uris=[REDIRECT]),
        storage=login_checks.Storage(known),
        redirect_handler=person.open,
        callback_handler=answer,
    )
    async with httpx.AsyncClient(auth=auth, verify=login_checks.trust(), follow_redirects=True) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                yield Peer(session, await session.initialize())


login_checks.main(connect, httpx, REDIRECT)
