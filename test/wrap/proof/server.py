"""FastMCP servers: `PORT` for HTTP, stdio without; `TASKS` with fastmcp-tasks. Each call is a line of the file `CALLS`."""

import os
import time

from fastmcp import FastMCP
from fastmcp.utilities.types import Image

TASKS = os.environ.get("TASKS")
mcp = FastMCP("reports")
if TASKS:
    from fastmcp_tasks import TasksExtension

    mcp.add_extension(TasksExtension())


def note(line):
    with open(os.environ["CALLS"], "a") as file:
        file.write(line + "\n")


@mcp.tool
def yearly_report(year: int, seconds: float = 0) -> str:
    """The report of a year."""
    note(f"yearly_report {year}")
    time.sleep(seconds)
    return f"The report of {year}"


@mcp.tool(annotations={"readOnlyHint": True})
def numbers(count: int) -> dict[str, list[int]]:
    """As many numbers."""
    return {"numbers": list(range(count))}


@mcp.tool
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG", format="png")


@mcp.tool
def refuses() -> str:
    """Fails."""
    raise ValueError("not today")


if TASKS:
    import asyncio

    @mcp.tool(task=True)
    async def crunch(name: str, seconds: float) -> str:
        """Takes long, as a task."""
        note(f"crunch {name}")
        await asyncio.sleep(seconds)
        return f"{name} is crunched"


if os.environ.get("PORT"):
    mcp.run(transport="http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
else:
    mcp.run(show_banner=False)
