/** A program whose thread is held, as a worker's is by a loop without an end. */
import { watchThread } from "../../worker/process/watchdog.ts";

watchThread(2_000);
setTimeout(function loop() {
  for (;;) Math.random();
}, 100);
