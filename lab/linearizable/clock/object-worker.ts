/** The Resonate object by itself, whose time stands still and moves by a `POST` to `CLOCK_PATH`. */
import { ResonateObject as Product } from "../../../functions/objects.ts";
import { CLOCK_PATH, holdDate } from "./held-date.ts";

const setTime = holdDate();

export class ResonateObject extends Product {
  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname !== CLOCK_PATH) return super.fetch(request);
    setTime(Number(await request.text()));
    // The platform fires an alarm by the machine's time, which this clock is ahead of.
    await this.alarm();
    return new Response();
  }
}

export { default } from "../../../test/support/object/worker.ts";
