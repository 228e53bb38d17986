/** The control tools of the scenarios of events. Each of them provokes its event through a real cause. */
import { join } from "node:path";
import { execa } from "execa";
import { bearer } from "../../test/auth/support.ts";
import { newSecret } from "../../test/events/receiver.ts";
import { eventsAt } from "../../test/events/support.ts";
import type { Gate } from "../../test/support/gate.ts";
import type { ControlledEdge } from "./controlled-edge.ts";

export const TOKENS = { suite: "static-token-of-the-suite", other: "static-token-of-another" };

/** How long the Resonate server is out of reach, from the first call on, in milliseconds. */
const OUTAGE_MS = 4_000;

/** A tool, from its arguments to its text. */
export type Control = (args: Record<string, string>) => Promise<string> | string;

export type Controls = Readonly<Record<string, Control>>;

/** The controls of every deployment, by their names. */
export function edgeControls(edge: ControlledEdge): Controls {
  return {
    async allow_callback_origin({ origin = "" }) {
      edge.bindings.ALLOW_LOOPBACK_CALLBACKS = "1";
      await edge.restart();
      return origin;
    },
    async restart() {
      await edge.restart();
      return String(edge.generation);
    },
    generation: () => String(edge.generation),
    quota: () => JSON.stringify({ name: "job.ended", max: 50 }),
    ...subscriptionControls(edge),
  };
}

function subscriptionControls(edge: ControlledEdge): Controls {
  /** The id of the latest subscription of the other caller. */
  let otherId: string | undefined;
  return {
    async subscription_state({ id = "" }) {
      const { subscriptions } = await requestSubscribers(edge, TOKENS.suite);
      const subscription = subscriptions.find((one) => one.id === id);
      return subscription ? (subscription.status.active ? "active" : "suspended") : "absent";
    },
    async subscribe_as({ name, url }) {
      await using other = await eventsAt(`${edge.url}/mcp`, TOKENS.other);
      const delivery = { mode: "webhook", url, secret: newSecret() };
      const params = { name, arguments: {}, delivery };
      otherId = ((await other.request("events/subscribe", params)) as { id: string }).id;
      return otherId;
    },
    async subscription_exists() {
      const { subscriptions } = await requestSubscribers(edge, TOKENS.other);
      return String(subscriptions.some(({ id }) => id === otherId));
    },
    async webhook_terminate({ id = "" }) {
      await requestSubscribers(edge, TOKENS.suite, `?end=${id}`, "DELETE");
      return id;
    },
  };
}

/** Makes a request to a caller's page of subscribers. */
async function requestSubscribers(edge: ControlledEdge, token: string, query = "", method = "GET") {
  const headers = { ...bearer(token), "sec-fetch-site": "same-origin" };
  const response = await fetch(`${edge.url}/pages/subscribers${query}`, { method, headers });
  return (await response.json()) as { subscriptions: { id: string; status: { active: boolean } }[] };
}

/** The controls of a deployment with a separate Resonate server. */
export function outageControls(gate: Gate): Controls {
  return {
    async yield_error({ name = "" }) {
      let until: number | undefined;
      gate.refuse("promise.get", () => {
        until ??= Date.now() + OUTAGE_MS;
        return Date.now() < until ? 503 : undefined;
      });
      return name;
    },
  };
}

/** The controls of a deployment as in an account. @param data the folder for a backup @param token the operator's */
export function operatorControls(edge: ControlledEdge, data: string, token: string): Controls {
  const operate = (...args: string[]) => {
    const env = { OPERATOR_TOKEN: token, RESONATE_URL: "", RESONATE_TOKEN: "" };
    return execa(process.execPath, ["cli/main.ts", ...args, "--url", edge.url], { env, all: true });
  };
  return {
    async yield_gap({ name = "" }) {
      await operate("forget", "suite", "--apply");
      return name;
    },
    async webhook_gap({ id = "" }) {
      const file = join(data, "backup.ndjson");
      await operate("backup", "--out", file);
      edge.isPaused = true;
      await edge.restart("restored");
      await operate("restore", "--from", file).finally(() => {
        edge.isPaused = false;
      });
      return id;
    },
    async terminate({ name = "" }) {
      await operate("operate", "block", "suite");
      return name;
    },
  };
}
