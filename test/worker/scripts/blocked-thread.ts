/** A program whose thread is blocked by an endless loop, like that of a worker with such a job. */
import { watchThread } from "../../../worker/process/watchdog.ts";

watchThread(2_000);
setTimeout(function loop() {
  for (;;) Math.random();
}, 100);
