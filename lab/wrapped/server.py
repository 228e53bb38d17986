"""FastMCP servers: over HTTP at `PORT`, or over stdio; with `TASKS` also fastmcp-tasks.

Each call adds a line to the file `CALLS`, and so does each look at a task. A tool with the name of a file as its argument waits
until that file exists.
"""

import os
import time

from fastmcp import FastMCP
from fastmcp.utilities.types import Image
from starlette.middleware import Middleware

TASKS = os.environ.get("TASKS")
mcp = FastMCP("reports")
if TASKS:
    from fastmcp_tasks import TasksExtension

    mcp.add_extension(TasksExtension())


def note(line):
    with open(os.environ["CALLS"], "a") as file:
        file.write(line + "\n")


@mcp.tool
def yearly_report(year: int, gate: str = "") -> str:
    """The report of a year."""
    note(f"yearly_report {year}")
    while gate and not os.path.exists(gate):
        time.sleep(0.1)
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
    async def crunch(name: str, gate: str) -> str:
        """Takes long, as a task."""
        note(f"crunch {name}")
        while not os.path.exists(gate):
            await asyncio.sleep(0.1)
        return f"{name} is crunched"


class Looks:
    """Records the requests that look at a task, which have a header that says so."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if (b"mcp-method", b"tasks/get") in scope.get("headers", []):
            note("looked")
        await self.app(scope, receive, send)


if os.environ.get("PORT"):
    mcp.run(
        transport="http",
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        middleware=[Middleware(Looks)],
        show_banner=False,
    )
else:
    mcp.run(show_banner=False)
