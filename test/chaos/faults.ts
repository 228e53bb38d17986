/** Injects the planned faults into a stack, and repairs the damage. */
import { setTimeout as delay } from "node:timers/promises";
import { isAnswering } from "../../cli/process/supervise.ts";
import { isAccount } from "../support/account.ts";
import type { Stack, StackPart } from "../support/stack.ts";
import type { ClientLog } from "./client-log.ts";
import type { PlannedFault } from "./plan.ts";

/** A period in which a process was down or had just come back, in milliseconds since the epoch. */
export interface Disruption {
  what: string;
  /** The affected process. The archive runs in this process, the run's own. */
  process: "edge" | "worker" | "resonate" | "archive";
  from: number;
  to: number;
}

type ProcessFault = Exclude<PlannedFault, { target: "upstream" }>;

interface Victim {
  name: string;
  process: Disruption["process"];
  part: StackPart;
  /** A URL that answers 2xx if the part works. */
  health(): string;
}

/** How long a process may take to end, and to answer after its start, in milliseconds. */
const RECOVERY = 30_000;

/** How often a start may fail: on a busy machine it may time out. */
const STARTS = 3;

/** The shortest pause of this process that counts as a disruption, in milliseconds. */
const STALL = 500;

export class Faults {
  readonly disruptions: Disruption[] = [];
  readonly #stack: Stack;
  readonly #log: ClientLog;
  /** The processes that this class has ended. Any other end of a process is a violation. */
  readonly #ended = new Set<StackPart["process"]>();
  readonly #turns = new Map<StackPart, Promise<void>>();

  constructor(stack: Stack, log: ClientLog) {
    this.#stack = stack;
    this.#log = log;
    for (const victim of this.#victims()) this.#watch(victim);
  }

  /** Records the times at which the busy machine paused this process, and with it the archive. */
  watchStalls(over: AbortSignal): void {
    let last = Date.now();
    const watch = setInterval(() => {
      const now = Date.now();
      if (now - last > STALL) this.disruptions.push({ what: "stall", process: "archive", from: last, to: now });
      last = now;
    }, 100);
    over.addEventListener("abort", () => clearInterval(watch));
  }

  /** Whether a fault affects only processes of this run. */
  isOurs({ target }: PlannedFault): boolean {
    if (target === "resonate") return this.#stack.server !== undefined;
    return target !== "worker" || this.#stack.workers.length > 0;
  }

  /** Injects a fault and waits until the affected part works again. */
  async inject(fault: PlannedFault): Promise<void> {
    if (fault.target === "upstream") {
      return this.#stack.archive.control.inject({ fault: fault.fault, times: fault.times });
    }
    await Promise.all(this.#hitBy(fault).map((victim) => this.#inTurn(victim, () => this.#disrupt(victim, fault))));
  }

  /** Delays a disruption until the last one of the same process is over. */
  #inTurn({ part }: Victim, disrupt: () => Promise<void>): Promise<void> {
    const turn = (this.#turns.get(part) ?? Promise.resolve()).then(disrupt);
    this.#turns.set(part, turn);
    return turn;
  }

  /** Kills all processes at the same time and starts them again. */
  async restartAll(): Promise<void> {
    await this.inject({ target: "everything", index: 0, how: "SIGKILL", ms: 100, at: 0 });
  }

  async #disrupt(victim: Victim, { how, ms }: ProcessFault): Promise<void> {
    const { name, process, part, health } = victim;
    const from = Date.now();
    const disruption: Disruption = {
      what: `${how} ${process === "worker" ? process : name}`,
      process,
      from,
      to: Number.POSITIVE_INFINITY,
    };
    this.disruptions.push(disruption);
    if (how === "SIGSTOP") {
      part.process.signal("SIGSTOP");
      await delay(ms);
      part.process.signal("SIGCONT");
    } else {
      this.#ended.add(part.process);
      const { exitCode } = await this.#end(victim, how);
      // The edge is workerd, which needs no clean shutdown.
      if (how === "SIGTERM" && name !== "edge" && exitCode !== 0) {
        this.#log.violation("process", `${name} ended with ${exitCode} on SIGTERM:\n${tail(part)}`);
      }
      await delay(Math.max(0, from + ms - Date.now()));
      await this.#start(victim);
    }
    if (!(await isAnswering(health(), AbortSignal.timeout(RECOVERY)))) {
      this.#log.violation("process", `${name} does not answer after ${how}:\n${tail(part)}`);
    }
    disruption.to = Date.now();
  }

  /** Restarts a process, with retries like those of a supervisor. */
  async #start(victim: Victim): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await victim.part.start();
        return this.#watch(victim);
      } catch (error) {
        if (attempt === STARTS) throw error;
      }
    }
  }

  /** Ends a process within its time limit. */
  async #end({ name, part }: Victim, how: NodeJS.Signals): ReturnType<StackPart["end"]> {
    const ended = part.end(how);
    const patience = new AbortController();
    const inTime = await Promise.race([
      ended.then(() => true),
      delay(RECOVERY, false, { signal: patience.signal }).catch(() => true),
    ]);
    patience.abort();
    if (!inTime) {
      this.#log.violation("process", `${name} does not end on ${how}:\n${tail(part)}`);
      return part.end("SIGKILL");
    }
    return ended;
  }

  #hitBy({ target, index }: ProcessFault): Victim[] {
    const victims = this.#victims();
    if (target === "everything") return victims;
    return victims.filter(({ name }) => name === (target === "worker" ? `worker ${index}` : target));
  }

  #victims(): Victim[] {
    const { edge, origin, workers, server, resonate } = this.#stack;
    return [
      // In an account it also contains the Resonate server and the runner.
      { name: "edge", process: isAccount ? "resonate" : "edge", part: edge, health: () => `${origin}/health` },
      ...workers.map((part, i): Victim => ({
        name: `worker ${i}`,
        process: "worker",
        part,
        health: () => part.process.healthUrl,
      })),
      ...(server
        ? [{ name: "resonate", process: "resonate", part: server, health: () => `${resonate.url}/ready` } as const]
        : []),
    ];
  }

  #watch({ name, part }: Victim): void {
    const { process } = part;
    void process.exited.then(({ exitCode, signal }) => {
      if (this.#ended.has(process)) return;
      this.#log.violation("process", `${name} ended by itself (${signal ?? exitCode}):\n${tail(part)}`);
    });
  }
}

function tail({ process }: StackPart): string {
  return process.output().split("\n").slice(-15).join("\n");
}
