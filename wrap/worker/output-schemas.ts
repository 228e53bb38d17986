/** Whether clients can compile the output schemas that the edge lists. Some refuse the whole list for one that they cannot. */
import { setImmediate } from "node:timers/promises";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { LRUCache } from "lru-cache";
import { outputSchemasOf } from "../listing.ts";

/** A server's lists are read again after each change. */
const faults = new LRUCache<string, { fault?: string }>({ max: 2_000 });
const MAX_FAULT_CHARACTERS = 200;

/** Why a client cannot compile an output schema in a form in which the edge lists it; undefined if it can. */
export async function outputSchemaFault(schema: Record<string, unknown>): Promise<string | undefined> {
  // Clients ignore formats that they do not know, and log each.
  const json = JSON.stringify(schema, (key, value) =>
    key === "format" && typeof value === "string" ? undefined : value,
  );
  let known = faults.get(json);
  if (!known) {
    // Compiling takes some milliseconds, and a list may have thousands: the worker's other work goes on between two.
    await setImmediate();
    known = compile(JSON.parse(json));
    faults.set(json, known);
  }
  return known.fault;
}

function compile(schema: Record<string, unknown>): { fault?: string } {
  try {
    for (const listed of new Set(Object.values(outputSchemasOf(schema)))) {
      // One for each: a validator keeps what it has compiled, and an identifier may occur in several schemas.
      const validate = new AjvJsonSchemaValidator().getValidator(listed);
      // A schema that refers to itself without end compiles, and then fails for every value.
      validate({});
    }
    return {};
  } catch (error) {
    return { fault: (error as Error).message.replace(/\s+/g, " ").slice(0, MAX_FAULT_CHARACTERS) };
  }
}
