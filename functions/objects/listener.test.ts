/** The waits that a listener serves at once. */
import { afterEach, expect, test, vi } from "vitest";
import { Listener } from "./listener.ts";

afterEach(() => void vi.unstubAllGlobals());

type Tell = Parameters<Listener["listen"]>[1];

const tell = (): Tell => Object.assign(async () => {}, { dup: tell, [Symbol.dispose]() {} });

test("one caller has up to 500 waits, also if all of them arrive while the connection opens", async () => {
  const opened = Promise.withResolvers<void>();
  vi.stubGlobal("fetch", async () => {
    await opened.promise;
    return new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });
  });
  const listener = new Listener({}, { RESONATE_URL: "http://resonate", AUTH_MODE: "none" });
  const waits = Array.from({ length: 600 }, (_, n) => listener.listen({ ids: [`job${n}`], caller: "ada." }, tell()));
  const other = listener.listen({ ids: ["job"], caller: "bob." }, tell());
  opened.resolve();
  const joined = await Promise.all([...waits, other]);
  const statuses = joined.map((answer) => ("status" in answer ? answer.status : 200));
  const count = (status: number) => statuses.filter((each) => each === status).length;
  expect([count(200), count(429), statuses.at(-1)]).toEqual([501, 100, 200]);
  for (const answer of joined) if ("held" in answer) (answer.held as unknown as Disposable)[Symbol.dispose]();
});
