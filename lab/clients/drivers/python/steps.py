"""The steps of steps.mjs, for the clients in Python: `await drive(list_tools, call)`."""

import json
import os

URL = os.environ["MCP_URL"]
TOKEN = os.environ.get("MCP_TOKEN")
RUN = os.environ.get("RUN", "run")
HEADERS = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
TOOLS = {
    "answer_for_user", "answer_question", "await_result", "cancel_job", "forget_jobs", "get_timer_status", "job_card",
    "list_jobs", "probe_status", "schedule_job", "set_timer", "start_gathering", "timer", "weather_data", "weather_range",
}
LATITUDE = round(47.5 + (int(RUN, 36) % 2000) / 10000, 4)
PLACE = {"latitude": LATITUDE, "longitude": -122.3}


def report(step, why=None):
    print(json.dumps({"step": step} if why is None else {"step": step, "why": str(why)[:300]}), flush=True)


async def step(name, run):
    try:
        outcome = await run()
        report(name, None if outcome is True else f"unexpected: {outcome!r}")
    except BaseException as error:  # a task group may raise an exception that is not an Exception
        inner = getattr(error, "exceptions", [error])[0]
        report(name, f"{type(inner).__name__}: {inner}")


def answer_of(result):
    """The structured content of an answer, in the form that the client gives it, and its text."""
    for name in ("structured_content", "structuredContent", "artifact"):
        structured = getattr(result, name, None)
        if structured:
            return structured.get("structured_content", structured), json.dumps(structured)
    content = getattr(result, "content", result)
    parts = content if isinstance(content, list) else [content]
    texts = [p if isinstance(p, str) else p.get("text", "") if isinstance(p, dict) else getattr(p, "text", "") for p in parts]
    text = "\n".join(texts)
    if isinstance(content, dict) and "text" not in content:
        return content, json.dumps(content)
    try:
        return json.loads(texts[0]), text
    except (ValueError, IndexError):
        return {}, text


async def drive(list_tools, call):
    async def ask(name, args):
        return answer_of(await call(name, args))[0]

    async def refusal(name, args):
        try:
            return answer_of(await call(name, args))[1]
        except Exception as error:
            return str(error)

    timer = f"t{RUN}"
    job = f"timer_{timer}"
    gathering = ""

    async def listed():
        missing = TOOLS - set(await list_tools())
        return not missing or missing

    async def set_timer():
        content = await ask("set_timer", {"timer_name": timer, "seconds": 3600})
        return content.get("job_name") == job or content

    async def status():
        content = await ask("get_timer_status", {"timer_name": timer})
        return content.get("remaining_seconds", 0) > 3000 or content

    async def jobs():
        content = await ask("list_jobs", {"limit": 100})
        return any(one["job_name"] == job for one in content["jobs"]) or content

    async def gather():
        nonlocal gathering
        content = await ask("start_gathering", {**PLACE, "year": 2013, "month": 5})
        gathering = content["job_name"]
        return gathering.startswith("weather_data_") or content

    async def await_result():
        content = await ask("await_result", {"job_names": [gathering], "timeout_seconds": 30})
        return len(content["results"][gathering]["daily"]["time"]) == 31 or content

    async def probe():
        first, second = (await ask("probe_status", {"job_names": [gathering, job]}))["statuses"]
        return (first["status"], second["status"]) == ("complete", "running")

    async def weather():
        content = await ask("weather_data", {**PLACE, "year": 2013, "month": 6})
        return len(content["result"]["daily"]["time"]) == 30 or content

    async def short_timer():
        content = await ask("timer", {"timer_name": f"{timer}s", "seconds": 1})
        return content.get("status") == "complete" or content

    async def weather_range():
        content = await ask("weather_range", {**PLACE, "from": "2013-05", "to": "2013-06"})
        return len(content["result"]["months"]) == 2 or content

    async def refused():
        text = await refusal("weather_range", {**PLACE, "from": "2012-01", "to": "2014-02"})
        return "takes 26 requests" in text or text

    async def no_question():
        text = await refusal("answer_question", {"job_name": job, "question": "q", "answer": "null"})
        return "asks nothing now" in text or text

    async def card():
        content = await ask("job_card", {"job_name": job})
        return content.get("status") == "running" or content

    async def not_the_user():
        text = await refusal("answer_for_user", {"job_name": job, "question": "q", "answer": "null"})
        return "does not say that it shows cards" in text or text

    async def cancel():
        content = await ask("cancel_job", {"job_names": [job]})
        return content["cancelled"] == [job] or content

    async def nulls():
        content = await ask("list_jobs", {"status": None, "kind": None, "limit": None, "cursor": None})
        return isinstance(content.get("jobs"), list) or content

    async def texts():
        args = {"latitude": f"{LATITUDE}", "longitude": "-122.3", "year": "2013", "month": "5"}
        content = await ask("start_gathering", args)
        return content.get("job_name") == gathering or content

    await step("list", listed)
    await step("set_timer", set_timer)
    await step("get_timer_status", status)
    await step("list_jobs", jobs)
    for name, run in [
        ("start_gathering", gather), ("await_result", await_result), ("probe_status", probe), ("weather_data", weather),
        ("timer", short_timer), ("weather_range", weather_range), ("weather_range, refused", refused),
        ("answer_question, refused", no_question), ("job_card", card), ("answer_for_user, refused", not_the_user),
        ("cancel_job", cancel), ("null", nulls), ("numbers as text", texts),
    ]:
        await step(name, run)
