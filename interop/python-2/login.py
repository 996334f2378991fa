"""The official Python SDK 2.x as a client that logs in."""

import os
import sys
from contextlib import asynccontextmanager

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shared"))
import checks
import login_checks

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

LEGACY = "2025-11-25"
REDIRECT = "http://127.0.0.1:1/callback"


class Peer:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version

    async def list(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool, arguments):
        result = await self.client.call_tool(tool, arguments)
        return "".join(getattr(block, "text", "") for block in result.content)


@asynccontextmanager
async def connect(url, person, client_id=None):
    async def answer():
        got = person.answer()
        return AuthorizationCodeResult(code=got["code"], state=got["state"], iss=got.get("iss"))

    known = None
    if client_id:
        known = OAuthClientInformationFull(
            client_id=client_id, redirect_uris=[REDIRECT], token_endpoint_auth_method="none"
        )
    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(client_name="python-2", redirect_uris=[REDIRECT]),
        storage=login_checks.Storage(known),
        redirect_handler=person.open,
        callback_handler=answer,
    )
    mode = "legacy" if checks.arguments()[0] == LEGACY else "auto"
    async with httpx2.AsyncClient(auth=auth, verify=login_checks.trust(), follow_redirects=True) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield Peer(client)


login_checks.main(connect, httpx2, REDIRECT)
