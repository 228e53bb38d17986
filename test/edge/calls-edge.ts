/** An edge whose `CallerObject` has code that takes and returns what only the runtime can pass on. */
import type { ObjectCalls } from "../../core/resonate/object-calls.ts";
import { RpcTarget } from "../../functions/objects/durable-object.ts";
import { lazyObject } from "../../functions/objects/lazy-objects.ts";
import { objectWith } from "../support/object-calls.ts";

export { Listener } from "../../functions/edge.ts";

class Counter extends RpcTarget {
  #count = 0;

  add(by: number): number {
    this.#count += by;
    return this.#count;
  }
}

const code = {
  counter: (): Counter => new Counter(),

  async twice(ask: (n: number) => Promise<number>): Promise<number[]> {
    return [await ask(1), await ask(2)];
  },

  upperCase(text: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const upper = new TransformStream<string, string>({
      transform: (part, controller) => controller.enqueue(part.toUpperCase()),
    });
    return text
      .pipeThrough(new TextDecoderStream() as never)
      .pipeThrough(upper)
      .pipeThrough(new TextEncoderStream());
  },

  fail(): never {
    throw new RangeError("there is no such tea");
  },
};

export class CallerObject extends lazyObject(async () => objectWith(code)) {}

type Code = typeof code;

interface Env {
  CALLER: { idFromName(name: string): object; get(id: object): ObjectCalls };
}

export default {
  async fetch(request: Request, { CALLER }: Env): Promise<Response> {
    const object = CALLER.get(CALLER.idFromName("tea"));
    const call = <Name extends keyof Code>(name: Name, ...args: Parameters<Code[Name]>) =>
      object.call(name, args) as Promise<Awaited<ReturnType<Code[Name]>>>;
    if (request.body) return new Response(await call("upperCase", request.body));
    const counter = await call("counter");
    const counts = [await counter.add(1), await counter.add(2)];
    const doubled = await call("twice", async (n) => 2 * n);
    const failure = await call("fail").catch((error: Error) => error.message);
    return Response.json({ counts, doubled, failure });
  },
};
