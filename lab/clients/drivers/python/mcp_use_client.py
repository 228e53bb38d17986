"""mcp-use, in Python."""

import asyncio
import os

os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"  # it would wait for a server of its vendor

from mcp_use import MCPClient
from steps import TOKEN, URL, drive


async def main():
    # With a token only in a header, the client would go to the authorization server.
    server = {"url": URL, **({"auth": TOKEN} if TOKEN else {})}
    client = MCPClient(config={"mcpServers": {"s": server}})
    session = await client.create_session("s")

    async def names():
        return [tool.name for tool in await session.list_tools()]

    await drive(names, session.call_tool)
    # The client leaves work running that does not end by itself.
    os._exit(0)


asyncio.run(main())
