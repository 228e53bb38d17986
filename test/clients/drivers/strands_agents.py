"""Strands."""

import asyncio
from types import SimpleNamespace

from mcp.client.streamable_http import streamablehttp_client
from steps import HEADERS, URL, drive
from strands.tools.mcp import MCPClient


async def main():
    with MCPClient(lambda: streamablehttp_client(URL, headers=HEADERS)) as client:

        async def names():
            return [tool.tool_name for tool in client.list_tools_sync()]

        async def call(name, args):
            result = await client.call_tool_async("1", name, args)
            return SimpleNamespace(structured_content=result.get("structuredContent"), content=result["content"])

        await drive(names, call)


asyncio.run(main())
