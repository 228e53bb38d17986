"""The Python SDK, of the 1 and 2 lines."""

import asyncio
import importlib.metadata

from steps import HEADERS, URL, drive


async def one():
    import httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()

        async def names():
            return [tool.name for tool in (await session.list_tools()).tools]

        await drive(names, session.call_tool)


async def two():
    import httpx2 as httpx
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as client:

            async def names():
                return [tool.name for tool in (await client.list_tools()).tools]

            await drive(names, client.call_tool)


asyncio.run(one() if importlib.metadata.version("mcp").startswith("1.") else two())
