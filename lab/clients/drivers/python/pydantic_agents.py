"""Pydantic AI."""

import asyncio

from steps import HEADERS, URL, drive

try:
    from pydantic_ai.mcp import MCPServerStreamableHTTP as Server
except ImportError:
    from pydantic_ai.mcp import MCPToolset as Server


async def main():
    server = Server(URL, headers=HEADERS)
    async with server:

        async def names():
            return [tool.name for tool in await server.list_tools()]

        await drive(names, server.direct_call_tool)


asyncio.run(main())
