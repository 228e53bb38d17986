/** A job whose function ended because of the deadline: its worker rejects the promise, but the job counts as timed out. */
import { decodeValue } from "./codec.ts";
import type { PromiseRecord } from "./connection/protocol.ts";

/** Whether a job's error says that the deadline has come. */
export const isLate = (error: unknown): error is Error => error instanceof Error && error.name === "DeadlineExceeded";

/** The state of a job's promise; `rejected_timedout` also for one that was rejected because of the deadline. */
export const endOf = ({ state, value }: Pick<PromiseRecord, "state" | "value">): PromiseRecord["state"] =>
  state === "rejected" && isLate(decodeValue(value)) ? "rejected_timedout" : state;
