"""FastMCP's client with fastmcp-tasks, which sends no Mcp-Name header on requests about tasks."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import call_tool_task
from steps import HEADERS, PLACE, RUN, URL, drive, step


def connect(**options):
    return Client(StreamableHttpTransport(URL, headers=HEADERS), **options)


async def agrees(message, response_type, params, context):
    return {"confirm": True}


async def main():
    async with connect() as client:

        async def names():
            return [tool.name for tool in await client.list_tools()]

        await drive(names, client.call_tool)

        async def cancelled():
            task = await call_tool_task(client, "timer", {"timer_name": f"k{RUN}", "seconds": 3600})
            await task.cancel()
            status = await task.status()
            return status.status == "cancelled" or status

        await step("task: cancelled", cancelled)

    async with connect(elicitation_handler=agrees) as client:

        async def answered():
            task = await call_tool_task(client, "weather_range", {**PLACE, "from": "2012-01", "to": "2014-01"})
            result = await task.result()
            return result.structured_content["status"] == "complete" or result

        await step("task: answered", answered)


asyncio.run(main())
