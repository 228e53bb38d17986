/** An edge whose `CallerObject` has code that takes and returns what only the runtime can pass on. */
import { callsOf, methodsOf, type ObjectCalls } from "../../core/resonate/object-calls.ts";
import { RpcTarget } from "../../functions/objects/durable-object.ts";
import { lazyObject } from "../../functions/objects/lazy-objects.ts";

export { Listener } from "../../functions/edge.ts";

class Counter extends RpcTarget {
  #count = 0;

  add(by: number): number {
    this.#count += by;
    return this.#count;
  }
}

class Code {
  counter(): Counter {
    return new Counter();
  }

  async twice(ask: (n: number) => Promise<number>): Promise<number[]> {
    return [await ask(1), await ask(2)];
  }

  upperCase(text: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const upper = new TransformStream<string, string>({
      transform: (part, controller) => controller.enqueue(part.toUpperCase()),
    });
    return text
      .pipeThrough(new TextDecoderStream() as never)
      .pipeThrough(upper)
      .pipeThrough(new TextEncoderStream());
  }

  fail(): never {
    throw new RangeError("there is no such tea");
  }
}

export class CallerObject extends lazyObject(async () => callsOf(new Code())) {}

/** The methods as a caller sees them: each answers later. */
type Remote = {
  [Name in keyof Code]: (...args: Parameters<Code[Name]>) => Promise<Awaited<ReturnType<Code[Name]>>>;
};

interface Env {
  CALLER: { idFromName(name: string): object; get(id: object): ObjectCalls };
}

export default {
  async fetch(request: Request, { CALLER }: Env): Promise<Response> {
    const code = methodsOf<Remote>(CALLER.get(CALLER.idFromName("tea")));
    if (request.body) return new Response(await code.upperCase(request.body));
    const counter = await code.counter();
    const counts = [await counter.add(1), await counter.add(2)];
    const doubled = await code.twice(async (n) => 2 * n);
    const failure = await code.fail().catch((error: Error) => error.message);
    return Response.json({ counts, doubled, failure });
  },
};
