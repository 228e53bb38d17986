/** The product with objects that log the start and end of everything that keeps them awake: requests, answer bodies, alarms. */
import { Listener as OwnListener } from "../../../functions/edge.ts";

export { CallerObject } from "../../../functions/edge.ts";

import { ResonateObject as OwnResonate, RunnerObject as OwnRunner } from "../../../functions/objects.ts";

export { default } from "../../../functions/index.ts";

/** Logs the start or end of something that keeps an object awake. */
function say(object: string, by: 1 | -1): void {
  console.log(JSON.stringify({ awake: object, by, at: Date.now() }));
}

/** Runs `work`, which keeps an object awake until its answer is read. */
async function awakeFor(object: string, work: () => Promise<Response>): Promise<Response> {
  say(object, 1);
  let isOver = false;
  const end = () => {
    if (!isOver) say(object, -1);
    isOver = true;
  };
  try {
    const response = await work();
    const reader = response.body?.getReader();
    if (!reader) {
      end();
      return response;
    }
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      },
      async cancel(reason) {
        end();
        await reader.cancel(reason);
      },
    });
    return new Response(body, response);
  } catch (error) {
    end();
    throw error;
  }
}

export class ResonateObject extends OwnResonate {
  override fetch(request: Request): Promise<Response> {
    return awakeFor("resonate", () => super.fetch(request));
  }

  override async alarm(): Promise<void> {
    say("resonate", 1);
    await super.alarm();
    say("resonate", -1);
  }
}

export class RunnerObject extends OwnRunner {
  readonly #name = `runner ${crypto.randomUUID()}`;

  override fetch(request: Request): Promise<Response> {
    return awakeFor(this.#name, () => super.fetch(request));
  }
}

type Told = Parameters<OwnListener["listen"]>[1];

/** Logs that a wait keeps the object awake from its subscription to its end. */
export class Listener extends OwnListener {
  override listen(wait: Parameters<OwnListener["listen"]>[0], tell: Told): ReturnType<OwnListener["listen"]> {
    const kept = (told: Told): Told =>
      Object.assign((said: string) => told(said), {
        dup: () => {
          say("listener", 1);
          return kept(told.dup());
        },
        [Symbol.dispose]: () => {
          told[Symbol.dispose]();
          if (told !== tell) say("listener", -1);
        },
      });
    return super.listen(wait, kept(tell));
  }
}
