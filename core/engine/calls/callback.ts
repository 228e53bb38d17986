import { type Callback, type CallbackOptions, NondeterminismError } from "../../author/context.ts";
import { outside } from "../guard/guard.ts";
import { callbackOf } from "../guard/seeded.ts";
import type { Command } from "../replay/commands/commands.ts";
import { parsedValue, schemaOf } from "./form.ts";
import type { Scope } from "./scope.ts";

const NO_ADDRESS =
  "needs the edge's public address and its key: set PUBLIC_URL and VIEW_KEY for the worker, as they are for the edge";

export function callback<T = unknown>(scope: Scope, name: string, options: CallbackOptions<T> = {}): Callback<T> {
  let url = "";
  const prepare = (command: Command) => {
    const { runtime, lease, clock, pass } = scope.parts;
    if (!runtime.callbackUrl) throw new NondeterminismError(`ctx.callback("${name}") ${NO_ADDRESS}`);
    const { schema, for: maxDuration = Number.POSITIVE_INFINITY } = options;
    if (!(maxDuration >= 1)) {
      throw new NondeterminismError(`ctx.callback("${name}"): for is ${maxDuration}; it takes milliseconds, 1 or more`);
    }
    const id = callbackOf(lease.run, command.path);
    url = runtime.callbackUrl(id);
    const form = schema && schemaOf(schema);
    const until = Math.min(Math.ceil(outside(() => clock.now()) + maxDuration), pass.waitsUntil);
    command.callback = { id, until, param: { callback: command.path, ...(form && { schema: form }) } };
  };
  const { schema } = options;
  const map = schema && ((value: unknown) => parsedValue(name, schema, value));
  const result = scope.issue<T, unknown>("callback", name, prepare, { map });
  return { url, result };
}
