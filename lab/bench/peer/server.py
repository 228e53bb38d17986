"""The peer: FastMCP's tasks, kept in Redis. It has the same tool as fetch.ts and fetch.run.ts in this folder.

python server.py        serves the tool over HTTP, at PORT
python -m fastmcp_tasks.worker_cli worker server.py:mcp        runs its tasks
"""

import os

import httpx2 as httpx
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("peer")
mcp.add_extension(TasksExtension())

# All calls share one client, which keeps its connections to the archive open.
archive = httpx.AsyncClient()


@mcp.tool(task=True)
async def fetch_once(name: str) -> dict:
    """Fetches once and returns the answer."""
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
