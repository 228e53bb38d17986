"""OpenAI's agents in Python, which give a call five seconds, and their conversion to strict schemas."""

import asyncio

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from steps import HEADERS, TOOLS, URL, drive, step


async def main():
    async with MCPServerStreamableHttp(params={"url": URL, "headers": HEADERS}) as server:

        async def names():
            return [tool.name for tool in await server.list_tools()]

        await drive(names, server.call_tool)

        async def strict():
            context = RunContextWrapper(None)
            tools = await MCPUtil.get_all_function_tools([server], True, context, Agent(name="a"))
            return len(tools) == len(TOOLS) or tools

        await step("converted to strict schemas", strict)


asyncio.run(main())
