import { parseArgs } from "node:util";

/** The parts of a run, in their order. Those that leave pending jobs behind come last. */
export const SECTIONS = [
  "ceiling",
  "bundle",
  "pages",
  "startup",
  "budgets",
  "rows",
  "malformed",
  "settlement",
  "hooks",
  "waiting",
  "jobs",
  "guard",
  "recovery",
  "hosts",
  "wrapped",
  "awake",
  "dev",
  "await",
  "growth",
  "requests",
  "peer",
] as const;
export type Section = (typeof SECTIONS)[number];

/** All but the sections that need other software or mostly wait, which run only on request. */
const DEFAULT_SECTIONS = SECTIONS.filter((section) => !["peer", "awake"].includes(section));

export const USAGE = `\
npm run bench [-- options]     measures the edge and the worker beside their floors, in about five minutes

  --short           about a minute: the ratios that stand for all; fails when one has fallen below
                    nine tenths of what lab/bench/report/recorded.json holds, or an operation takes many more requests,
                    rows or CPU than lab/bench/report/budgets.json allows
  --only a,b        only these sections: ${SECTIONS.join(", ")}
                    (peer: FastMCP's tasks on Redis, in turns with this product on the same work. It needs
                    redis-server, and a Python with fastmcp[tasks], which PEER_PYTHON may name;
                    wrapped: WRAP_CHECKOUT may name another checkout, whose wrap is measured beside)
  --seconds n       how long each request is measured at a time (0.5; 0.25 in the short form)
  --out file        also write the figures as JSON to this file, besides .build/bench.json
  --record          keeps the ratios of this run in lab/bench/report/recorded.json, and budgets for new operations

RESONATE_URL (and RESONATE_TOKEN) measure against that server; otherwise an embedded one is started.`;

export interface Options {
  help: boolean;
  short: boolean;
  record: boolean;
  sections: readonly Section[];
  /** How long each request is measured at a time. */
  seconds: number;
  out: string | undefined;
}

/** @throws {Error} that names the wrong argument */
export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: "boolean", short: "h", default: false },
      short: { type: "boolean", default: false },
      record: { type: "boolean", default: false },
      only: { type: "string" },
      seconds: { type: "string" },
      out: { type: "string" },
    },
  });
  const { help, short, record, out } = values;
  const seconds = Number(values.seconds ?? (short ? 0.25 : 0.5));
  if (!(seconds >= 0.1 && seconds <= 60)) throw new Error(`--seconds must be from 0.1 to 60, not ${values.seconds}`);
  const all = short ? (["bundle", "budgets", "rows", "malformed", "requests"] as const) : DEFAULT_SECTIONS;
  const sections = values.only === undefined ? all : values.only.split(",").map(sectionOf);
  if (record && (short || values.only !== undefined)) throw new Error("--record is for a whole run.");
  return { help, short, record, sections, seconds, out };
}

function sectionOf(name: string): Section {
  const section = SECTIONS.find((each) => each === name.trim());
  if (!section) throw new Error(`--only: there is no section ${name}. The sections are ${SECTIONS.join(", ")}.`);
  return section;
}
