import asyncio
import os
from datetime import datetime, timedelta, timezone

from resonate.resonate import Resonate


async def main() -> None:
    resonate = Resonate(url=os.environ["RESONATE_URL"])
    namespace, group = os.environ.get("RESONATE_NAMESPACE", ""), os.environ.get("RESONATE_GROUP", "workers")
    due = (datetime.now(timezone.utc) + timedelta(seconds=2)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    timer = resonate.options(target=group, timeout=timedelta(days=7)).rpc(
        f"{namespace}timer_from python", "timer", {"timer_name": "from python", "fires_at": due}
    )
    print(await timer.result())
    await resonate.stop()


asyncio.run(main())
