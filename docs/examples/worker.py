import asyncio
import os
from datetime import timedelta

from resonate.context import Context
from resonate.resonate import Resonate


async def count(ctx: Context, text: str) -> int:
    return len(text.split())


async def count_words(ctx: Context, args: dict) -> dict:
    words = await ctx.run(count, args["text"])  # recorded: not done again after a crash
    await ctx.sleep(timedelta(seconds=1))  # holds no worker
    return {"words": words}


async def main() -> None:
    resonate = Resonate(url=os.environ["RESONATE_URL"], group="python")
    resonate.register(count_words)
    await asyncio.Event().wait()


asyncio.run(main())
