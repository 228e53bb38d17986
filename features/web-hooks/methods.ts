/** The methods of the Events extension by which clients subscribe by web hook. */
import * as z from "zod";
import type { Caller } from "../../core/author/index.ts";
import type { EdgeFeature } from "../../core/feature.ts";
import type { EventQuery } from "../../core/jobs/index.ts";
import type { Remote } from "../../core/resonate/index.ts";
import { type EventErrorCodes, eventError, invalidParams, type Method } from "../../core/tools/index.ts";
import { isSecret } from "../../functions/http/signed-post.ts";
import type { Refusal, WebHookMethods } from "./requests.ts";

const SECRET_FORM = "whsec_ and base64 of 24 to 64 bytes are required, as Standard Webhooks has it";

const Hook = z.object({
  delivery: z.object({ mode: z.string().optional(), url: z.string(), secret: z.string().optional() }),
  ttlMs: z.int().min(1).nullish(),
});

type Params = Record<string, unknown>;

interface WebHookFeatureOptions {
  /** The methods of a caller's object, by the caller's key. */
  of(key: string): Remote<WebHookMethods>;
  codes: EventErrorCodes;
  /** The events that a request is about. @throws {ProtocolError} for a request that is not valid */
  queryOf(params: Params): Promise<EventQuery>;
  /** The parameters by which a request says that. */
  queryParams: readonly string[];
}

/** A method that costs `weight` requests. What is sent later goes on without the token, so that reading is not enough. */
const method = (params: readonly string[], weight: number, handle: NonNullable<Method["handle"]>): Method => ({
  form: { params },
  cost: () => ({ access: ["read", "write"], weight }),
  handle,
});

export function webHooks({ of, codes, queryOf, queryParams }: WebHookFeatureOptions): EdgeFeature {
  const hookOf = (params: Params, { key }: Caller) => {
    if (key === "") throw eventError(codes, "Forbidden", { reason: "web hooks are for callers who sign in" });
    const { data, error } = Hook.safeParse(params);
    if (!data) throw invalidParams(error);
    return data;
  };
  const granted = (answer: object | Refusal): Params => {
    if (!("refused" in answer)) return { ...answer };
    if (answer.refused === "InvalidUrl") throw invalidParams(`delivery.url: ${answer.data.problem}`);
    throw eventError(codes, answer.refused, answer.data);
  };
  /** Has events delivered by web hook, or renews that. */
  const subscribe = async (params: Params, caller: Caller): Promise<Params> => {
    const { limit: _, ...query } = await queryOf(params);
    const { delivery, ttlMs } = hookOf(params, caller);
    const { mode = "webhook", url, secret = "" } = delivery;
    if (mode !== "webhook") throw eventError(codes, "Unsupported", { feature: "deliveryMode", value: mode });
    if (!isSecret(secret)) throw invalidParams(`delivery.secret: ${SECRET_FORM}`);
    // The caller's object checks that the address is public.
    const href = URL.parse(url)?.href ?? url;
    return granted(await of(caller.key).subscribe(caller, { ...query, url: href, secret, ttlMs }));
  };
  /** Ends a subscription by web hook. */
  const unsubscribe = async (params: Params, caller: Caller): Promise<Params> => {
    const { name, filter } = await queryOf(params);
    const { url } = hookOf(params, caller).delivery;
    if (!URL.canParse(url)) throw eventError(codes, "NotFound", { kind: "subscription" });
    return granted(await of(caller.key).unsubscribe(caller, { name, filter, url: new URL(url).href }));
  };
  return {
    name: "web-hooks",
    methods: {
      "events/subscribe": method([...queryParams, "delivery", "ttlMs"], 4, (params, { scope }) =>
        subscribe(params, scope.caller),
      ),
      "events/unsubscribe": method(["name", "arguments", "delivery"], 1, (params, { scope }) =>
        unsubscribe(params, scope.caller),
      ),
    },
  };
}
