/**
 * The steps of every client. A driver supplies how its client lists and calls tools; each step prints a line of JSON with
 * its name and, if it failed, the reason.
 */
const { MCP_URL: url, MCP_TOKEN: token, RUN = "run" } = process.env;

export { RUN, token, url };
export const headers = token ? { Authorization: `Bearer ${token}` } : {};

export const TOOLS = [
  "answer_for_user",
  "answer_question",
  "await_result",
  "cancel_job",
  "forget_jobs",
  "get_timer_status",
  "job_card",
  "list_jobs",
  "probe_status",
  "schedule_job",
  "set_timer",
  "start_gathering",
  "timer",
  "weather_data",
  "weather_range",
];

/** The sample weather is Seattle's; each run has its own coordinates nearby. */
const latitude = Number((47.5 + (Number.parseInt(RUN, 36) % 2_000) / 10_000).toFixed(4));
const place = { latitude, longitude: -122.3 };
const long = { ...place, from: "2012-01", to: "2014-02" };

function report(step, why) {
  console.log(JSON.stringify(why === undefined ? { step } : { step, why: String(why).slice(0, 300) }));
}

export async function step(name, run) {
  try {
    const outcome = await run();
    report(name, outcome === true ? undefined : `unexpected: ${JSON.stringify(outcome)}`);
  } catch (error) {
    report(name, error?.message ?? error);
  }
}

export const skip = (name, why) => console.log(JSON.stringify({ step: name, skipped: why }));

/** The structured content and the text of a tool's answer, from any client's form of it. */
export function answerOf(result) {
  const content = result?.content ?? (Array.isArray(result) ? result : undefined);
  const parts = Array.isArray(content) ? content : [content ?? result];
  const text = parts.map((part) => (typeof part === "string" ? part : (part?.text ?? ""))).join("\n");
  const structured = result?.structuredContent ?? jsonIn(text) ?? (typeof result === "object" ? result : undefined);
  return { text, content: structured ?? {} };
}

function jsonIn(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `list` resolves with the names of the tools; `call` with the argument of `answerOf`, or rejects with the refusal of the tool. */
export async function drive({ list, call }) {
  const ask = async (name, args) => answerOf(await call(name, args));
  const refusal = async (name, args) => {
    try {
      return (await ask(name, args)).text;
    } catch (error) {
      return String(error?.message ?? error);
    }
  };
  const timer = `t${RUN}`;
  const job = `timer_${timer}`;
  await step("list", async () => {
    const listed = await list();
    const missing = TOOLS.filter((name) => !listed.includes(name));
    return missing.length === 0 || missing;
  });
  await step("set_timer", async () => {
    const { content } = await ask("set_timer", { timer_name: timer, seconds: 3_600 });
    return content.job_name === job || content;
  });
  await step("get_timer_status", async () => {
    const { content } = await ask("get_timer_status", { timer_name: timer });
    return content.remaining_seconds > 3_000 || content;
  });
  await step("list_jobs", async () => {
    const { content } = await ask("list_jobs", { limit: 100 });
    return content.jobs?.some(({ job_name }) => job_name === job) || content;
  });
  let gathering = "";
  await step("start_gathering", async () => {
    const { content } = await ask("start_gathering", { ...place, year: 2013, month: 5 });
    gathering = content.job_name;
    return gathering.startsWith("weather_data_") || content;
  });
  await step("await_result", async () => {
    const { content } = await ask("await_result", { job_names: [gathering], timeout_seconds: 30 });
    return content.results?.[gathering]?.daily?.time?.length === 31 || content;
  });
  await step("probe_status", async () => {
    const { content } = await ask("probe_status", { job_names: [gathering, job] });
    const [first, second] = content.statuses ?? [];
    return (first?.status === "complete" && second?.status === "running") || content;
  });
  await step("weather_data", async () => {
    const { content } = await ask("weather_data", { ...place, year: 2013, month: 6 });
    return content.result?.daily?.time?.length === 30 || content;
  });
  await step("timer", async () => {
    const { content } = await ask("timer", { timer_name: `${timer}s`, seconds: 1 });
    return content.status === "complete" || content;
  });
  await step("weather_range", async () => {
    const { content } = await ask("weather_range", { ...place, from: "2013-05", to: "2013-06" });
    return content.result?.months?.length === 2 || content;
  });
  await step("weather_range, refused", async () => {
    const text = await refusal("weather_range", long);
    return /Nothing was done: weather_range_.*takes 26 requests/.test(text) || text;
  });
  await step("answer_question, refused", async () => {
    const text = await refusal("answer_question", { job_name: job, question: "q", answer: "null" });
    return text.includes("asks nothing now") || text;
  });
  await step("job_card", async () => {
    const { content } = await ask("job_card", { job_name: job });
    return content.status === "running" || content;
  });
  await step("answer_for_user, refused", async () => {
    const text = await refusal("answer_for_user", { job_name: job, question: "q", answer: "null" });
    return text.includes("does not say that it shows cards") || text;
  });
  await step("cancel_job", async () => {
    const { content } = await ask("cancel_job", { job_names: [job] });
    return content.cancelled?.[0] === job || content;
  });
  await step("null", async () => {
    const nothing = { status: null, kind: null, limit: null, cursor: null };
    const { content } = await ask("list_jobs", nothing);
    return Array.isArray(content.jobs) || content;
  });
  await step("numbers as text", async () => {
    const args = { latitude: `${latitude}`, longitude: "-122.3", year: "2013", month: "5" };
    const { content } = await ask("start_gathering", args);
    return content.job_name === gathering || content;
  });
}

/** The steps of a client with tasks: `request` sends a request of the 2026-07-28 revision and resolves with its result. */
export async function driveTasks(request) {
  let taskId = "";
  const until = async (status) => {
    for (let tries = 0; tries < 60; tries += 1) {
      const task = await request("tasks/get", { taskId });
      if (task.status === status) return task;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    throw new Error(`the task is not ${status}`);
  };
  await step("task: asks", async () => {
    ({ taskId } = await request("tools/call", { name: "weather_range", arguments: { ...long, to: "2014-01" } }));
    return Object.keys((await until("input_required")).inputRequests).join() === "confirm";
  });
  await step("task: answered", async () => {
    await request("tasks/update", {
      taskId,
      inputResponses: { confirm: { action: "accept", content: { confirm: true } } },
    });
    const task = await until("completed");
    return task.result.structuredContent.status === "complete" || task;
  });
  await step("task: cancelled", async () => {
    const args = { timer_name: `k${RUN}`, seconds: 3_600 };
    ({ taskId } = await request("tools/call", { name: "timer", arguments: args }));
    await request("tasks/cancel", { taskId });
    return (await until("cancelled")).status === "cancelled";
  });
}
