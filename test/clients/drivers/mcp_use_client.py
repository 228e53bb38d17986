"""mcp-use, in Python."""

import asyncio
import os

os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"  # it would wait for an address of its vendor's

from mcp_use import MCPClient
from steps import HEADERS, URL, drive


async def main():
    client = MCPClient(config={"mcpServers": {"s": {"url": URL, "headers": HEADERS}}})
    session = await client.create_session("s")

    async def names():
        return [tool.name for tool in await session.list_tools()]

    await drive(names, session.call_tool)
    await client.close_all_sessions()


asyncio.run(main())
