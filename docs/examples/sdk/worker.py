import asyncio
import os
import time
from datetime import timedelta

from resonate.context import Context
from resonate.resonate import Resonate
from resonate.types import Value

resonate = Resonate(url=os.environ["RESONATE_URL"], group="words", autostart=False)


async def count(ctx: Context, text: str) -> int:
    return len(text.split())


async def progress(ctx: Context, job: str, n: int, entry: dict) -> None:
    """Writes the nth entry of a job's progress feed: {"message": …} or {"progress": {"done": …, "total": …}}."""
    id = f"{job}:u{n}"
    tags = {"resonate:origin": job, "resonate:parent": job, "resonate:branch": id, "resonate:scope": "global"}
    param = Value(data={**entry, "questions": {}})
    await resonate.promises.create(id, int(time.time() * 1000) - 1, param, {**tags, "resonate:timer": "true"})


async def count_words(ctx: Context, args: dict) -> dict:
    await ctx.run(progress, ctx.info.origin_id, 1, {"message": "counting"})
    if len(args["text"]) > 1_000:
        raise ValueError("the text is too long")
    words = await ctx.run(count, args["text"])  # recorded: not done again after a crash
    await ctx.sleep(timedelta(seconds=1))  # holds no worker
    return {"words": words}


async def main() -> None:
    resonate.register(count_words)
    resonate.start()
    await asyncio.Event().wait()


asyncio.run(main())
