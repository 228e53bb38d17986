/** Events by web hook: receivers are verified and public, deliveries are signed and survive crashes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { receive } from "../../docs/examples/receiver.ts";
import { until } from "../../testing/stack/program.ts";
import { bearer, bearerBindings } from "../auth/support.ts";
import { startBrowser, visit } from "../pages/browser.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { newSecret, serve, serveAsNode, startReceiver } from "./receiver.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob", eve: "static-token-of-eve" };

let resonate: Resonate;
let stack: Stack;
beforeAll(async () => {
  resonate = await startResonate();
  stack = await startStack({
    resonate,
    workers: 1,
    bindings: { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1", VIEW_KEY: "v".repeat(32) },
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const ENDED = { name: "job.ended" };
const timer = (timer_name: string, seconds = 1) => ["set_timer", { timer_name, seconds }] as const;

interface Granted {
  id: string;
  refreshBefore: string;
  cursor: string;
  truncated: boolean;
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the shape of its content
  deliveryStatus?: any;
}

async function hooksAt(token: string) {
  const caller = await eventsAt(stack.url, token);
  const subscribe = (url: string, secret: string, more: object = {}) =>
    caller.request("events/subscribe", {
      ...ENDED,
      delivery: { mode: "webhook", url, secret },
      ...more,
    }) as Promise<Granted>;
  return { ...caller, subscribe };
}

test("a verified receiver gets a signed event for each end of its caller's jobs, until it is unsubscribed", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  await using bob = await hooksAt(TOKENS.bob);
  await using receiver = await startReceiver(newSecret());
  const { url, secret, delivered, forged } = receiver;
  const granted = await ada.subscribe(url, secret, { ttlMs: 3_600_000 });
  expect(granted).toMatchObject({ id: expect.stringMatching(/^sub_/), truncated: false });
  expect(Date.parse(granted.refreshBefore) - Date.now()).toBeGreaterThan(3_500_000);
  await bob.start(...timer("bobs"));
  await ada.start(...timer("hooked"));
  await until("the delivery", () => delivered.length > 0);
  expect(delivered[0]).toMatchObject({
    id: "ended_timer_hooked",
    subscription: granted.id,
    body: { eventId: "ended_timer_hooked", ...ENDED, data: { job_name: "timer_hooked", status: "complete" } },
  });
  // The cursor of a delivery is after the delivered event.
  expect((await ada.poll({ ...ENDED, cursor: delivered[0]?.body.cursor })).events).toEqual([]);
  const again = await ada.subscribe(url, secret, { cursor: granted.cursor });
  expect(again).toMatchObject({ id: granted.id, deliveryStatus: { active: true, lastError: null } });
  expect(await ada.request("events/unsubscribe", { ...ENDED, delivery: { url } })).not.toHaveProperty("error");
  await expect(ada.request("events/unsubscribe", { ...ENDED, delivery: { url } })).rejects.toMatchObject({
    code: -32023,
    data: { kind: "subscription" },
  });
  await ada.start(...timer("after"));
  await ada.collect(again.cursor, 1);
  expect([delivered.length, forged]).toEqual([1, []]);
});

test("a caller can see its subscriptions on pages and end them; another caller can do neither", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  await using receiver = await startReceiver(newSecret());
  const { url, secret, delivered } = receiver;
  const { id } = await ada.subscribe(url, secret, { arguments: { job_names: ["timer_watched"] } });
  await ada.start(...timer("watched"));
  await ada.start(...timer("unwatched"));
  await until("the delivery", () => delivered.length > 0);
  const told = (token: string, path = "", init: RequestInit = {}) =>
    fetch(`${stack.origin}/pages/subscribers${path}`, { ...init, headers: { ...bearer(token), ...init.headers } });
  const own = { "sec-fetch-site": "same-origin" };
  const status = { active: true, lastDeliveryAt: expect.any(String), lastError: null };
  const { host } = new URL(url);
  const seen = { id, name: "job.ended", host, filter: { jobNames: ["timer_watched"] }, status };
  const shown = await until("the delivery to be noted", async () => {
    const text = await (await told(TOKENS.ada)).text();
    return JSON.parse(text).subscriptions[0]?.status.lastDeliveryAt ? text : undefined;
  });
  expect(JSON.parse(shown)).toMatchObject({ subscriptions: [seen], schedules: [] });
  for (const kept of [secret, "/hooks/mine"]) expect(shown).not.toContain(kept);
  expect(await (await told(TOKENS.ada, "?job=timer_watched")).json()).toMatchObject({ subscriptions: [seen] });
  expect(await (await told(TOKENS.ada, "?job=timer_unwatched")).json()).toMatchObject({ subscriptions: [] });
  expect(await (await told(TOKENS.bob)).json()).toMatchObject({ subscriptions: [], listeners: [] });
  expect(await (await told(TOKENS.bob, "?job=timer_watched")).json()).toMatchObject({ subscriptions: [] });
  const end = { method: "DELETE", headers: own };
  await told(TOKENS.bob, `?end=${id}`, end);
  for (const site of ["cross-site", "same-site", "none"])
    expect((await told(TOKENS.ada, `?end=${id}`, { ...end, headers: { "sec-fetch-site": site } })).status).toBe(403);
  await told(TOKENS.ada, `?end=${id}`);
  expect(await (await told(TOKENS.ada)).json()).toMatchObject({ subscriptions: [seen] });
  const browser = await startBrowser();
  if (!browser) {
    expect((await told(TOKENS.ada, `?end=${id}`, end)).status).toBe(200);
  } else {
    await using visitor = await visit(browser, stack.origin);
    const page = await visitor.open("/jobs/timer_watched");
    await page.getByLabel("Token").fill(TOKENS.ada);
    await page.getByRole("button", { name: "Sign in" }).click();
    const watching = page.getByRole("listitem").filter({ hasText: host });
    await watching.getByText("Last delivery").waitFor();
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/told-job.png`, fullPage: true });
    page.on("dialog", (dialog) => dialog.accept());
    await watching.getByRole("button", { name: `End the subscription of ${host}` }).click();
    await watching.waitFor({ state: "detached" });
    await browser.close();
  }
  await until("the receiver to be told", () => delivered.at(-1)?.body.type === "terminated");
  expect(await (await told(TOKENS.ada)).json()).toMatchObject({ subscriptions: [] });
});

test("the receiver in the documentation accepts deliveries, and refuses a forged one", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  const secret = newSecret();
  const kept: { eventId?: string }[] = [];
  await using server = await serve((request) => receive(request, secret, async (event) => void kept.push(event)));
  await ada.subscribe(server.url, secret, { arguments: { job_names: ["timer_kept"] } });
  await ada.start(...timer("kept"));
  await until("the delivery", () => kept.length > 0);
  expect(kept[0]).toMatchObject({ eventId: "ended_timer_kept" });
  const forged = await fetch(server.url, { method: "POST", body: "{}", headers: { "webhook-signature": "v1,x" } });
  expect([forged.status, kept.length]).toEqual([401, 1]);
});

test("a failed delivery is repeated with the same id, even if the edge was killed in between", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  await using receiver = await startReceiver(newSecret());
  await using other = await startReceiver(newSecret());
  const { delivered, state } = receiver;
  state.answer = 503;
  await ada.subscribe(receiver.url, receiver.secret, { arguments: { kinds: ["timer"] } });
  await ada.subscribe(other.url, other.secret);
  await ada.start(...timer("repeated"));
  await until("the first attempt", () => delivered.length > 0);
  const status = await ada.subscribe(receiver.url, receiver.secret, { arguments: { kinds: ["timer"] } });
  expect(status.deliveryStatus).toMatchObject({ active: true, lastError: "http_5xx", failedSince: expect.any(String) });
  await stack.edge.kill();
  state.answer = 200;
  await stack.edge.start();
  await until("the second attempt", () => delivered.length > 1, 30_000);
  expect(delivered.map(({ id }) => id)).toEqual(["ended_timer_repeated", "ended_timer_repeated"]);
  // A failing receiver does not delay another one.
  expect(other.delivered[0]?.at).toBeLessThan(delivered[1]?.at as number);
});

test("a receiver that hangs, redirects, is gone or answers endlessly does not delay the others", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  await using good = await startReceiver(newSecret());
  const hostile = await Promise.all(Array.from({ length: 4 }, () => startReceiver(newSecret())));
  await ada.subscribe(good.url, good.secret, { arguments: { job_names: ["timer_hostile"] } });
  for (const one of hostile) await ada.subscribe(one.url, one.secret, { arguments: { job_names: ["timer_hostile"] } });
  const answers = [
    () => {},
    410,
    (response: import("node:http").ServerResponse) => response.writeHead(302, { location: good.url }).end(),
    (response: import("node:http").ServerResponse) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write("x".repeat(1_000_000)), 1);
      response.on("close", () => clearInterval(timer));
    },
  ];
  for (const [i, one] of hostile.entries()) one.state.answer = answers[i] as never;
  await ada.start(...timer("hostile"));
  await until("all attempts", () => [good, ...hostile].every(({ delivered }) => delivered.length > 0));
  expect(good.delivered.length).toBe(1);
  for (const one of hostile) await one[Symbol.asyncDispose]();
});

test("an event that was given up is reported as a gap, after 413 as well, and by the next subscribe after 410", async () => {
  await using bob = await hooksAt(TOKENS.bob);
  await using receiver = await startReceiver(newSecret());
  const { url, secret, delivered, state } = receiver;
  const narrowed = { arguments: { job_names: ["timer_lost", "timer_lost too", "timer_lost last"] } };
  const { id } = await bob.subscribe(url, secret, narrowed);
  const held: import("node:http").ServerResponse[] = [];
  const gaps = () => delivered.filter(({ body }) => body.type === "gap");
  const gapAnswers = [413, "held", 204, 410];
  state.answer = (response) => {
    const isGap = delivered.at(-1)?.body.type === "gap";
    const answer = isGap ? (gapAnswers[gaps().length - 1] ?? 204) : 413;
    if (answer === "held") held.push(response);
    else response.writeHead(Number(answer)).end();
  };
  await bob.start(...timer("lost"));
  await until("a gap that is refused, and its second attempt", () => gaps().length === 2, 30_000);
  expect(gaps()[1]?.id).toBe(gaps()[0]?.id);
  // An event that is lost while a gap is being delivered gets its own gap.
  await bob.start(...timer("lost too"));
  await until("the second loss", () => delivered.some(({ body }) => body.data?.job_name === "timer_lost too"));
  held[0]?.writeHead(204).end();
  await until("its gap", () => gaps().length === 3, 30_000);
  expect(gaps()[2]?.id).not.toBe(gaps()[1]?.id);
  await bob.start(...timer("lost last"));
  await until("a gap that the receiver does not want", () => gaps().length === 4, 30_000);
  const again = () => bob.subscribe(url, secret, narrowed);
  await until("the loss to be told", async () => (await again()).truncated);
  expect(await again()).toMatchObject({ id, truncated: false, deliveryStatus: { active: true } });
  expect(gaps().length).toBe(4);
});

test("a receiver that fails the challenge is refused; one that its origin lists needs no challenge", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  await using receiver = await startReceiver(newSecret());
  receiver.state.echoes = false;
  const refusal = { code: -32027, data: { reason: "challenge_failed" } };
  await expect(ada.subscribe(receiver.url, receiver.secret)).rejects.toMatchObject(refusal);
  receiver.state.document = { receivers: ["/other/"] };
  await expect(ada.subscribe(receiver.url, receiver.secret)).rejects.toMatchObject(refusal);
  receiver.state.document = { receivers: ["/hooks/"] };
  expect(await ada.subscribe(receiver.url, receiver.secret)).toHaveProperty("id");
  await expect(ada.subscribe("http://127.0.0.1:9/", receiver.secret)).rejects.toMatchObject({
    code: -32027,
    data: { reason: "connection_refused" },
  });
});

test("a challenge that is answered endlessly, slowly, with a redirect or never fails, and delays nobody", async () => {
  await using eve = await hooksAt(TOKENS.eve);
  await using elsewhere = await startReceiver(newSecret());
  type Response = import("node:http").ServerResponse;
  const each = (response: Response, ms: number, text: string) => {
    const timer = setInterval(() => response.write(text), ms);
    response.on("close", () => clearInterval(timer));
  };
  const answers: [(response: Response) => void, string][] = [
    [(response) => each(response, 1, "x".repeat(1_000_000)), "challenge_failed"],
    [(response) => each(response, 1_000, " "), "timeout"],
    [(response) => response.writeHead(307, { location: elsewhere.url }).end(), "http_4xx"],
    [() => {}, "timeout"],
  ];
  const refused = answers.map(async ([answer, reason]) => {
    await using server = await serveAsNode((_, response) => answer(response));
    await expect(eve.subscribe(server.url, newSecret())).rejects.toMatchObject({ code: -32027, data: { reason } });
  });
  await using good = await startReceiver(newSecret());
  await eve.subscribe(good.url, good.secret);
  await eve.request("events/unsubscribe", { ...ENDED, delivery: { url: good.url } });
  await Promise.all(refused);
  expect([elsewhere.delivered, elsewhere.forged]).toEqual([[], []]);
});

test("after a secret is replaced, deliveries are signed with both for a while", async () => {
  await using ada = await hooksAt(TOKENS.ada);
  const [before, after] = [newSecret(), newSecret()];
  await using receiver = await startReceiver(before);
  const narrowed = { arguments: { job_names: ["timer_rotated"] } };
  await ada.subscribe(receiver.url, before, narrowed);
  await ada.subscribe(receiver.url, after, narrowed);
  await ada.start(...timer("rotated"));
  const delivery = await until("a delivery that the secret before verifies", () => receiver.delivered[0]);
  expect([before, after, newSecret()].map(delivery.isSignedWith)).toEqual([true, true, false]);
});

test("a subscription without https, a public address, a secret or a caller is refused, and so is one too many", async () => {
  await using eve = await hooksAt(TOKENS.eve);
  const secret = newSecret();
  for (const url of [
    "ftp://example.com/",
    "http://example.com/",
    "https://10.0.0.1/",
    "https://2852039166/",
    "https://[::ffff:169.254.169.254]/",
    "https://metadata.google.internal/",
    "https://user:secret@example.com/",
    "nothing",
  ])
    await expect(eve.subscribe(url, secret)).rejects.toMatchObject({ code: -32602 });
  for (const wrong of ["", "secret", "whsec_c2hvcnQ=", `whsec_${"!".repeat(40)}`])
    await expect(eve.subscribe("https://example.com/", wrong)).rejects.toMatchObject({ code: -32602 });
  await using receiver = await startReceiver(secret);
  const subscribe = (i: number) =>
    eve.subscribe(receiver.url, secret, { arguments: { job_names: [`timer_${i}`] } }).then(
      () => "granted",
      ({ code, data }) => [code, data.limit],
    );
  const answers: unknown[] = [];
  for (let i = 0; i < 52; i++) answers.push(await subscribe(i));
  expect(answers.filter((answer) => answer === "granted").length).toBe(50);
  expect(answers.at(-1)).toEqual([-32025, "subscriptions"]);

  await using open = await startStack({ resonate, workers: 0 });
  await using anyone = await eventsAt(open.url);
  const request = anyone.request("events/subscribe", { ...ENDED, delivery: { url: receiver.url, secret } });
  await expect(request).rejects.toMatchObject({ code: -32024 });
  expect((await anyone.list()).events[0]?.delivery).toEqual(["poll", "push"]);
});

/** The number of subscriptions that one caller requests. The long version of the test sets 10,000. */
const ASKED = Number(process.env.SUBSCRIPTIONS ?? 400);

test(
  "a caller that requests hundreds of subscriptions gets fifty, while another subscribes and gets its events",
  {
    timeout: 30_000 + 30 * ASKED,
  },
  async () => {
    await using own = await startStack({
      resonate,
      workers: 1,
      bindings: { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1", RATE_LIMIT: "0" },
    });
    await using eve = await eventsAt(own.url, TOKENS.eve);
    await using bob = await eventsAt(own.url, TOKENS.bob);
    await using flooded = await startReceiver(newSecret());
    await using receiver = await startReceiver(newSecret());
    let asked = 0;
    let isTold = false;
    const answers: Record<string, number> = {};
    const ask = async () => {
      // Goes on beyond ASKED until the other caller has its events.
      while (asked < ASKED || !isTold) {
        asked += 1;
        const { url, secret } = flooded;
        const params = { ...ENDED, arguments: { job_names: [`timer_${asked}`] }, delivery: { url, secret } };
        const answer = await eve.request("events/subscribe", params).then(
          () => "granted",
          ({ code }) => code,
        );
        answers[answer] = (answers[answer] ?? 0) + 1;
      }
    };
    const flood = Promise.all(Array.from({ length: 16 }, ask));
    const tell = async () => {
      await until("the flood", () => asked > 60);
      await bob.request("events/subscribe", { ...ENDED, delivery: { url: receiver.url, secret: receiver.secret } });
      for (const n of [1, 2, 3]) await bob.start(...timer(`beside the flood ${n}`));
      await until("three deliveries", () => receiver.delivered.length === 3);
    };
    await tell().finally(() => {
      isTold = true;
    });
    await flood;
    expect(answers).toEqual({ granted: 50, [-32025]: asked - 50 });
    expect([...flooded.delivered, ...receiver.forged]).toEqual([]);
  },
);

test("a caller whose token is removed, or who is blocked, is only notified that its subscription has ended", async () => {
  const bindings: Record<string, string> = { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1" };
  await using own = await startStack({ resonate, workers: 1, bindings });
  await using receivers = new AsyncDisposableStack();
  const leaving = await Promise.all(
    [TOKENS.eve, TOKENS.bob].map(async (token) => {
      const caller = receivers.use(await eventsAt(own.url, token));
      const receiver = receivers.use(await startReceiver(newSecret()));
      const { url, secret } = receiver;
      await caller.request("events/subscribe", { ...ENDED, delivery: { url, secret } });
      receiver.state.answer = 503;
      await caller.start(...timer("too late"));
      return receiver;
    }),
  );
  await until("attempts", () => leaving.every(({ delivered }) => delivered.length > 0));
  const { eve: _, ...others } = TOKENS;
  Object.assign(bindings, bearerBindings(others), { BLOCKED_CALLERS: "bob", EVENT_ERRORS: "sketch" });
  await own.edge.kill();
  await own.edge.start();
  for (const { state } of leaving) state.answer = 200;
  await until("the ends to be told", () => leaving.every(({ delivered }) => delivered.length > 1), 45_000);
  for (const { delivered } of leaving)
    expect(delivered.slice(1).map(({ id, body }) => [id.split("_")[1], body])).toEqual([
      ["terminated", { type: "terminated", error: expect.objectContaining({ code: -32012 }) }],
    ]);
});
