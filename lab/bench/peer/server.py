"""The peer: FastMCP's tasks, kept in Redis. The same tool as fetch.ts and fetch.run.ts beside this.

python server.py        serves it over HTTP, at PORT
python -m fastmcp_tasks.worker_cli worker server.py:mcp        runs its tasks
"""

import os

import httpx2 as httpx
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("peer")
mcp.add_extension(TasksExtension())

# One client for all: connections to the archive are kept open.
archive = httpx.AsyncClient()


@mcp.tool(task=True)
async def fetch_once(name: str) -> dict:
    """Fetches once and returns what it got."""
    response = await archive.get(os.environ["ARCHIVE_URL"], params={"name": name})
    response.raise_for_status()
    return response.json()


if __name__ == "__main__":
    mcp.run(
        transport="http",
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        stateless_http=True,
        json_response=True,
        show_banner=False,
        uvicorn_config={"log_level": "warning"},
    )
