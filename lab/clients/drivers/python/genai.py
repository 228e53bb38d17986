"""Google's SDK, which turns a session's tools into declarations for Gemini."""

import asyncio
import importlib.metadata

from steps import HEADERS, TOOLS, URL, drive, step


def without_type(schema):
    """The parts of a schema that have no type, and its lists whose items have none."""
    parts = [*(schema.properties or {}).values(), *(schema.any_of or []), *([schema.items] if schema.items else [])]
    empty = schema.type is None and not schema.any_of or schema.type == "ARRAY" and not schema.items
    return ([schema] if empty else []) + [one for part in parts for one in without_type(part)]


async def convert(tools):
    from google.genai import _mcp_utils

    async def converted():
        declared = _mcp_utils.mcp_to_gemini_tools(tools)
        declarations = [one for tool in declared for one in tool.function_declarations]
        names = [one.name for one in declarations]
        [one.model_dump_json() for one in declarations]
        untyped = [one for declaration in declarations for one in without_type(declaration.parameters)]
        return (len(names) == len(TOOLS) and not untyped) or (names, untyped)

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
