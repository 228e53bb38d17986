import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { answerRequest, BadRequest } from "./archive.ts";
import { Control, type Fault, Rule } from "./faults.ts";

export interface SampleArchive extends AsyncDisposable {
  /** The value for `WEATHER_API_URL`. */
  readonly url: string;
  readonly control: Control;
}

/**
 * Serves the sample archive on 127.0.0.1 (`port` 0: any free port). With `controls`, other processes can use `control` too: POST
 * a rule to `/_control/faults`, DELETE all rules, and `GET /_control/requests`.
 */
export async function startSampleArchive({ port = 0, controls = false } = {}): Promise<SampleArchive> {
  const control = new Control();
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get("/health", (c) => c.json({ status: "ok" }));
  app.get("/v1/archive", async (c) => {
    const query = new URL(c.req.url).search.slice(1);
    const { fault, done } = control.begin(query);
    try {
      const respondProperly = () => respond(query);
      return fault ? await misbehave(fault, respondProperly, c.env, c.req.raw.signal) : respondProperly();
    } finally {
      done();
    }
  });
  if (controls) {
    app.get("/_control/requests", (c) => c.json(control.requests));
    app.delete("/_control/faults", (c) => {
      control.clear();
      return c.body(null, 204);
    });
    app.post("/_control/faults", async (c) => {
      const rule = Rule.safeParse(await c.req.json().catch(() => undefined));
      if (!rule.success) return c.json({ error: rule.error.issues }, 400);
      control.inject(rule.data);
      return c.body(null, 204);
    });
  }
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  await once(server.listen(port, "127.0.0.1"), "listening").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EADDRINUSE" ? new Error(`port ${port} is already in use`) : error;
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/archive`,
    control,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(query: string): Response {
  try {
    return Response.json(answerRequest(new URLSearchParams(query)));
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    return Response.json({ error: true, reason: error.message }, { status: 400 });
  }
}

type Misbehavior = NonNullable<ReturnType<Control["begin"]>["fault"]>;

/** Answers with a fault. `closed` aborts when the client closes the connection. */
async function misbehave(fault: Misbehavior, respondProperly: () => Response, env: HttpBindings, closed: AbortSignal) {
  switch (fault.kind) {
    case "hold":
      await Promise.race([fault.until, new Promise((resolve) => closed.addEventListener("abort", resolve))]);
      return respondProperly();
    case "slow":
      await delay(fault.ms, undefined, { signal: closed }).catch(() => {});
      return respondProperly();
    case "hang": {
      if (fault.after === "headers") return new Response(new ReadableStream({ start: (c) => c.enqueue(FIRST_BYTES) }));
      await new Promise((resolve) => closed.addEventListener("abort", resolve));
      return RESPONSE_ALREADY_SENT;
    }
    case "refuse":
      env.incoming.socket.resetAndDestroy();
      return RESPONSE_ALREADY_SENT;
    case "status": {
      const headers = new Headers();
      if (fault.retry_after !== undefined) headers.set("Retry-After", fault.retry_after);
      if (fault.location !== undefined) headers.set("Location", fault.location);
      const body = { error: true, reason: fault.reason ?? `status ${fault.status} on request` };
      return Response.json(body, { status: fault.status, headers });
    }
    case "rubbish":
      return new Response(await RUBBISH_BODIES[fault.body](respondProperly));
    case "missing":
      return change(respondProperly, (_name, values) =>
        values.map((value, i) => (i < values.length - fault.days ? value : null)),
      );
  }
}

const FIRST_BYTES = new TextEncoder().encode('{"latitude":47.6');

const RUBBISH_BODIES: Record<
  Extract<Fault, { kind: "rubbish" }>["body"],
  (proper: () => Response) => string | Promise<string>
> = {
  html: () => "<html><body>Bad gateway</body></html>",
  truncated: async (proper) => (await proper().text()).slice(0, -40),
  shape: () => '{"hourly":{"time":[]}}',
  days: async (proper) => (await change(proper, (_name, values) => values.slice(1), true)).text(),
  huge: () => JSON.stringify({ padding: "x".repeat(2_000_000) }),
};

/** The proper answer with each daily series changed by `edit`, and with `time` also the list of days. */
async function change(
  proper: () => Response,
  edit: (name: string, values: unknown[]) => unknown[],
  time = false,
): Promise<Response> {
  const response = proper();
  if (!response.ok) return response;
  const body = (await response.json()) as { daily: Record<string, unknown[]> };
  for (const [name, values] of Object.entries(body.daily)) {
    if (time || name !== "time") body.daily[name] = edit(name, values);
  }
  return Response.json(body);
}
