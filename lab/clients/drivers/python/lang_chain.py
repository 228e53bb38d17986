"""LangChain's adapters in Python."""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from steps import HEADERS, URL, drive


async def main():
    client = MultiServerMCPClient({"s": {"url": URL, "transport": "streamable_http", "headers": HEADERS}})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def names():
        return list(tools)

    async def call(name, args):
        return await tools[name].ainvoke(args)

    await drive(names, call)


asyncio.run(main())
