/** How a job stands whose function has heard of the deadline: it ends by its worker, as one that timed out. */
import { decodeValue } from "./codec.ts";
import type { PromiseRecord } from "./connection/protocol.ts";

/** Whether a job's error says that the deadline has come. */
export const isLate = (error: unknown): error is Error => error instanceof Error && error.name === "DeadlineExceeded";

/** The state of a job's promise, or `rejected_timedout` for one that ended so. */
export const endOf = ({ state, value }: Pick<PromiseRecord, "state" | "value">): PromiseRecord["state"] =>
  state === "rejected" && isLate(decodeValue(value)) ? "rejected_timedout" : state;
