"""OpenAI's agents in Python, which give a call five seconds, and their conversion to strict schemas."""

import asyncio

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from steps import HEADERS, TOOLS, URL, drive, step


def without_fields(schema):
    """The objects in a strict schema that must stay empty."""
    if isinstance(schema, list):
        return [found for part in schema for found in without_fields(part)]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    own = [schema] if "object" in (kind if isinstance(kind, list) else [kind]) and not schema.get("properties") else []
    return own + [found for part in schema.values() for found in without_fields(part)]


async def main():
    async with MCPServerStreamableHttp(params={"url": URL, "headers": HEADERS}) as server:

        async def names():
            return [tool.name for tool in await server.list_tools()]

        await drive(names, server.call_tool)

        async def strict():
            context = RunContextWrapper(None)
            tools = await MCPUtil.get_all_function_tools([server], True, context, Agent(name="a"))
            # Schemas that cannot be converted stay unchanged, with only a log line.
            loose = [tool.name for tool in tools if not tool.strict_json_schema]
            closed = [one for tool in tools for one in without_fields(tool.params_json_schema)]
            return (len(tools) == len(TOOLS) and not loose + closed) or (len(tools), loose, closed)

        await step("converted to strict schemas", strict)


asyncio.run(main())
