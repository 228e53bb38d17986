/** A Worker with only the Resonate object. It holds `Date`, and a `POST` to `CLOCK_PATH` sets it. */
import { ResonateObject as Product } from "../../../functions/objects.ts";
import { CLOCK_PATH, holdDate } from "./held-date.ts";

const setTime = holdDate();

export class ResonateObject extends Product {
  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname !== CLOCK_PATH) return super.fetch(request);
    setTime(Number(await request.text()));
    // The platform fires alarms by the machine's time. This clock is ahead of it, so the alarm is called here.
    await this.alarm();
    return new Response();
  }
}

export { default } from "../../../test/support/object/object-worker.ts";
