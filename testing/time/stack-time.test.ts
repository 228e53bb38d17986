import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { CLOCK_VARIABLE } from "./shift-date.ts";
import { startTime, type Time } from "./stack-time.ts";

test("a process that does not follow holds the time up only for a while, and receives the newest time", async () => {
  await using time = await startTime(["worker"], async () => {}, 50);
  // The process reads and does not answer.
  const stopped = await follower(time, () => {});
  await time.move(1_000);
  await time.move(2_000);
  expect(time.ahead).toBe(3_000);
  await expect.poll(() => stopped.times).toEqual([0, 1_000, 3_000]);
});

test("two moves that begin at once both finish", async () => {
  await using time = await startTime(["worker"], async () => {});
  const process = await follower(time, (socket) => socket.write("moved\n"));
  await Promise.all([time.move(1_000), time.move(2_000)]);
  expect(process.times).toEqual([0, 1_000, 3_000]);
});

/** A process of the kind `worker`; `times` lists the times that it has received. */
async function follower(time: Time, onTime: (socket: Socket) => void): Promise<{ times: number[] }> {
  const socket = connect(Number(time.movable("worker").env[CLOCK_VARIABLE]), "127.0.0.1");
  socket.on("error", () => {});
  const times: number[] = [];
  const lines = createInterface({ input: socket });
  const first = once(lines, "line");
  lines.on("line", (line) => {
    times.push(Number(line));
    onTime(socket);
  });
  await first;
  return { times };
}
