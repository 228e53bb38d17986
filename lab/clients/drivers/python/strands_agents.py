"""Strands."""

import asyncio
from types import SimpleNamespace

import httpx2 as httpx
from mcp.client.streamable_http import streamable_http_client
from steps import HEADERS, URL, drive
from strands.tools.mcp import MCPClient


def connect():
    return streamable_http_client(URL, http_client=httpx.AsyncClient(headers=HEADERS, timeout=60))


async def main():
    with MCPClient(connect) as client:

        async def names():
            return [tool.tool_name for tool in client.list_tools_sync()]

        async def call(name, args):
            result = await client.call_tool_async("1", name, args)
            return SimpleNamespace(structured_content=result.get("structuredContent"), content=result["content"])

        await drive(names, call)


asyncio.run(main())
