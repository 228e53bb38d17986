"""Google's SDK, which turns a session's tools into declarations for Gemini."""

import asyncio
import importlib.metadata

from steps import HEADERS, TOOLS, URL, drive, step


async def convert(tools):
    from google.genai import _mcp_utils

    async def converted():
        declared = _mcp_utils.mcp_to_gemini_tools(tools)
        names = [one.name for tool in declared for one in tool.function_declarations]
        [declaration.model_dump_json() for tool in declared for declaration in tool.function_declarations]
        return len(names) == len(TOOLS) or names

    await step("converted for Google", converted)


async def main():
    if importlib.metadata.version("mcp").startswith("1."):
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _), ClientSession(read, write) as client:
            await client.initialize()
            await run(client)
    else:
        import httpx2 as httpx
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
            async with Client(streamable_http_client(URL, http_client=http)) as client:
                await run(client)


async def run(client):
    async def names():
        return [tool.name for tool in (await client.list_tools()).tools]

    await drive(names, client.call_tool)
    await convert((await client.list_tools()).tools)


asyncio.run(main())
