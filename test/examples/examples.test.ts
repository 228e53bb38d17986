/** The documentation's examples: each is killed and replayed at many points, and all run on a stack whose worker dies. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Implementation } from "../../core/index.ts";
import { crawlRun } from "../../docs/examples/crawl/crawl.run.ts";
import { exportRun } from "../../docs/examples/export/export.run.ts";
import { fulfilRun, parcelRun } from "../../docs/examples/fulfil/fulfil.run.ts";
import { importRun } from "../../docs/examples/import/import.run.ts";
import { invoiceRun } from "../../docs/examples/invoice/invoice.run.ts";
import { nightlyRun } from "../../docs/examples/nightly/nightly.run.ts";
import { orderRun } from "../../docs/examples/order/order.run.ts";
import { purchaseRun } from "../../docs/examples/purchase/purchase.run.ts";
import { quotesRun } from "../../docs/examples/quotes/quotes.run.ts";
import { researchRun } from "../../docs/examples/research/research.run.ts";
import { tripRun } from "../../docs/examples/trip/trip.run.ts";
import { watchRun } from "../../docs/examples/watch/watch.run.ts";
import { type ReplayOptions, replay, startStack } from "../../testing/index.ts";
import { until } from "../../testing/stack/program.ts";
import { startServices } from "./services.ts";

let services: Awaited<ReturnType<typeof startServices>>;
beforeAll(async () => {
  services = await startServices();
});
afterAll(async () => {
  await services?.[Symbol.asyncDispose]();
});

/** The times of nightly reports around the night in which Berlin's clocks go forward. */
const NIGHTS = ["2027-03-27T02:00:00.000Z", "2027-03-28T01:00:00.000Z", "2027-03-29T01:00:00.000Z"];

const contacts = Array.from({ length: 250 }, (_, i) => `contact ${i}`);

const EXAMPLES: [name: string, run: Implementation, args: object, result: unknown, options?: ReplayOptions][] = [
  [
    "a trip",
    tripRun,
    { city: "Athens", day: "2027-05-01" },
    { flight: "flight to Athens", hotel: "hotel to Athens", car: "car to Athens" },
  ],
  [
    "a purchase that the user approves of",
    purchaseRun,
    { item: "a chair", euros: 90 },
    { approved_by: "user", order: "order of a chair" },
    { answers: { approve: { approved: true } } },
  ],
  [
    "a purchase that only the director answers",
    purchaseRun,
    { item: "a desk", euros: 900 },
    { approved_by: "director", order: "order of a desk" },
    { callbacks: { decision: { approved: true } } },
  ],
  [
    "research within its budget",
    researchRun,
    { topic: "tea" },
    { answers: expect.objectContaining({ length: 8 }), not_answered: expect.objectContaining({ length: 2 }) },
  ],
  [
    "reports across a change of clocks",
    nightlyRun,
    { from: "2027-03-27", nights: 3, timezone: "Europe/Berlin" },
    { reports: NIGHTS.map((at) => ({ at, rows: 7 })) },
  ],
  ["a crawl", crawlRun, { start: "/site/0", pages: 30 }, { pages: 30, broken: ["/site/7"] }],
  ["an export", exportRun, { table: "sales" }, { file: "e1.csv", rows: 12 }],
  ["an import", importRun, { customer: "acme", contacts }, { added: 250 }],
  ["a parcel", parcelRun, { order: 3, warehouse: "north" }, { tracking: "north-3" }],
  [
    "an order",
    fulfilRun,
    { order: 3, warehouses: ["north", "south"] },
    { parcels: ["north-3", "south-3"] },
    { jobs: { parcel_3_north: { tracking: "north-3" }, parcel_3_south: { tracking: "south-3" } } },
  ],
  ["a web hook", orderRun, { number: 3 }, { number: 3, paid: 12 }, { callbacks: { payment: { amount: 12 } } }],
  ["an invoice that is paid", invoiceRun, { number: 3 }, { paid: true }],
  ["a watch of two days", watchRun, { article: "chairs", days: 2, day: 0 }, { left: 3 }],
  [
    "a comparison of carriers",
    quotesRun,
    { kilos: 2, carriers: ["swift", "ox", "broken"] },
    { carrier: "ox", dollars: 24, silent: ["broken"] },
  ],
];

test.each(EXAMPLES)("%s ends the same wherever its worker dies", async (_name, run, args, result, options) => {
  const env = { SERVICES_URL: services.url };
  const all = await replay(run as Parameters<typeof replay>[0], args, { env, runs: 6, ...options });
  expect(all.result).toEqual(result);
});

test("a trip that fails undoes what it has booked, wherever its worker dies", async () => {
  const nowhere = replay(tripRun, { city: "Nowhere", day: "2027-05-01" }, { env: { SERVICES_URL: services.url } });
  await expect(nowhere).rejects.toThrow("/car/bookings: it answered 404");
});

test("all examples together keep their work when their worker is killed", async () => {
  await using world = await startServices();
  const programs = { edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts" };
  await using stack = await startStack({ ...programs, env: { SERVICES_URL: world.url } });
  const [worker] = stack.workers;
  const day = new Date(stack.clock.now + 86_400_000).toISOString().slice(0, 10);
  const calls: [tool: string, args: object, result: object][] = [
    ["book_trip", { city: "Athens", day }, { car: "car to Athens" }],
    ["buy", { item: "a desk", euros: 900 }, { approved_by: "director", order: "order of a desk" }],
    ["research", { topic: "tea" }, { answers: { length: 8 }, not_answered: { length: 2 } }],
    ["nightly_report", { from: day, nights: 2 }, { reports: { length: 2 } }],
    ["crawl", { start: "/site/0" }, { pages: 500, broken: ["/site/7"] }],
    ["export_table", { table: "sales" }, { file: "e1.csv", rows: 12 }],
    ["import_contacts", { customer: "acme", contacts }, { added: 250 }],
    ["send_order", { order: 3, warehouses: ["north", "south"] }, { parcels: ["north-3", "south-3"] }],
    ["compare_carriers", { kilos: 2, carriers: ["swift", "ox", "broken"] }, { carrier: "ox", silent: ["broken"] }],
    ["watch_stock", { article: "chairs", days: 2 }, { left: 3 }],
    ["take_order", { number: 3 }, { number: 3, paid: 12 }],
  ];
  const names = new Map<string, string>();
  for (const [tool, args] of calls) void stack.call(tool, args).catch(() => {});
  const nowhere = stack.call("book_trip", { city: "Nowhere", day });
  void stack.call("release", { version: "9" }).catch(() => {}); // nobody answers its question
  for (const [tool, args] of calls) {
    names.set(tool, await stack.waitForJob(`${tool}_${"city" in args ? args.city : ""}`));
  }
  // Some requests are in flight when the worker is killed.
  await world.upstream.waitForRequests(200, 30_000);
  await worker?.kill();
  await worker?.start();
  await stack.clock.advance(4_000); // the killed worker's leases end
  // The crawl may take at most six hours of the clock, so it must end before the clock moves by days.
  await until(
    "the crawl to end",
    async () => {
      await stack.clock.advance(10_000); // for leases and pauses
      const args = { job_names: [names.get("crawl")], timeout_seconds: 1 };
      return Object.keys((await stack.call("await_result", args)).results).length === 1;
    },
    120_000,
  );
  await stack.job("take_order_3").callback("payment").send({ amount: 12 });
  await stack.clock.advance(3 * 86_400_000 + 60_000);
  // On a busy machine the user is asked later, and so the director is, too.
  for (let hours = 0; hours < 12 && world.decisions.length === 0; hours++) await stack.clock.advance(3_600_000);
  // The director follows the address in the mail.
  expect(world.decisions).toHaveLength(1);
  const headers = { "content-type": "application/json" };
  const decided = await fetch(world.decisions[0] ?? "", { method: "POST", headers, body: '{"approved":true}' });
  expect(decided.status).toBe(200);
  const { results } = await stack.call("await_result", { job_names: [...names.values()] });
  for (const [tool, , result] of calls) expect([tool, results[names.get(tool) ?? ""]]).toMatchObject([tool, result]);
  await expect(nowhere).rejects.toThrow("/car/bookings: it answered 404");

  // Every booking is made once, and cancelled once under its reference.
  const trips = (city: string) => world.doneAt(/bookings/).filter((booking) => booking.city === city);
  expect([trips("Athens").length, trips("Nowhere").length]).toEqual([3, 3]);
  const undone = new Set([...trips("Nowhere"), ...world.doneAt(/cancellations/)].map(({ reference }) => reference));
  expect([undone.size, world.doneAt(/cancellations/).length]).toEqual([1, 3]);
  expect(world.doneAt(/mails/).map(({ to }) => to)).toEqual(["user", "director"]);
  expect(["answers", "contacts", "release", "reports"].map((at) => world.doneAt(new RegExp(at)).length)).toEqual([
    8, 3, 1, 2,
  ]);
  // A page is requested twice only if the worker died between its answer and its journal entry.
  const pages = world.upstream.requests.map(({ url }) => url).filter((url) => url.startsWith("/site"));
  expect(new Set(pages).size).toBe(500);
  expect(pages.length).toBeLessThan(520);
  const { statuses } = await stack.call("probe_status", { job_names: ["parcel_3_north"] });
  expect(statuses).toMatchObject([{ status: "complete", result: { tracking: "north-3" } }]);
  // The function rejects its promise when its deadline passes, and the list still says that it timed out.
  await stack.clock.advance(12 * 86_400_000);
  const { jobs } = await stack.call("list_jobs", { status: "timed_out" });
  expect(jobs).toMatchObject([{ job_name: "release_9", status: "timed_out" }]);
});
