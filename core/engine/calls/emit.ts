/** `ctx.emit` and `ctx.event`: partial results and events, which are the outputs of a job. */
import { NondeterminismError } from "../../author/context.ts";
import { EVENT, LEFT_OUT } from "../../author/event.ts";
import { storable, UnstorableValue } from "../../author/values.ts";
import { outputId } from "../../resonate/ids.ts";
import { bytesIn } from "../../resonate/size.ts";
import { outside } from "../guard/guard.ts";
import type { Command } from "../replay/commands/commands.ts";
import { RecordRefused } from "../step-feature.ts";
import type { Scope } from "./scope.ts";
import { REQUEST_OPTIONS } from "./start.ts";

/** In characters of JSON. */
const MAX_OUTPUT_LENGTH = 50_000;
const MAX_PAYLOAD_LENGTH = 16_000;

export function emit(scope: Scope, value: unknown): Promise<void> {
  return scope.issue("emit", "emit", (command) => {
    append(scope, command, checkedPayload(value, "ctx.emit", MAX_OUTPUT_LENGTH));
  });
}

export function event(scope: Scope, name: string, payload: unknown): Promise<void> {
  return scope.issue("emit", `event ${name}`, (command) => {
    const { commands, runtime } = scope.parts;
    const { events = [] } = runtime;
    const defined = events.find((each) => each.name === name);
    if (!defined) {
      const names = events.map((each) => each.name).join(", ") || "none";
      throw new NondeterminismError(`ctx.event: the definition has no event ${name}. Its events: ${names}`);
    }
    const stored = checkedPayload(payload, "ctx.event", MAX_PAYLOAD_LENGTH);
    const { error } = outside(() => defined.payload.safeParse(stored));
    if (error) throw new UnstorableValue(`ctx.event("${name}"): its payload does not fit: ${error.message}`);
    commands.events += 1;
    append(scope, command, { [EVENT]: name, payload: stored });
  });
}

/** Appends to the outputs of the job. An output that has a number is always written. */
function append(scope: Scope, command: Command, value: unknown): void {
  const { commands, lease } = scope.parts;
  commands.emitted += 1;
  const id = outputId(lease.id, commands.emitted);
  // The record holds the size of the output, which counts among the bytes that the job stores.
  const fn = async () => {
    const output = await lease.create(id, value, "resolved").catch(async (error) => {
      if (error instanceof RecordRefused) await lease.create(id, LEFT_OUT, "resolved");
      throw error;
    });
    return bytesIn(output.param);
  };
  commands.outputs.set(command, fn);
  command.work = { do: "attempt", fn, options: REQUEST_OPTIONS };
}

/** The stored form of a value. @throws {UnstorableValue} if JSON cannot hold it, or it is too long */
function checkedPayload(value: unknown, call: "ctx.emit" | "ctx.event", maxLength: number): unknown {
  const stored = storable(value, `${call}: its value`);
  const length = JSON.stringify(stored)?.length;
  if (length !== undefined && length <= maxLength) return stored;
  const got = length === undefined ? "nothing" : `${length} characters of JSON`;
  throw new UnstorableValue(`${call} takes a value of up to ${maxLength} characters of JSON, and got ${got}`);
}
