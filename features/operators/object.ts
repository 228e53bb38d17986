/** The object through which operators see and act, as a part. */
import type { ObjectPart } from "../../core/jobs/index.ts";
import type { OperateCalls } from "./calls.ts";
import { Operating, type OperatingOptions } from "./operating.ts";
import { OPERATE_TABLES } from "./tables.ts";

export function operatorsObject(options: OperatingOptions): ObjectPart {
  const operating = new Operating(options);
  const methods: OperateCalls = {
    report: (report) => operating.report(report),
    usage: (usage) => operating.usage(usage),
    started: (kind, job) => operating.started(kind, job),
    settings: () => operating.settings(),
    note: (who, what, about) => operating.note(who, what, about),
    command: (who, what, about) => operating.command(who, what, about),
    noteCall: (...call) => operating.noteCall(...call),
    overview: (span) => operating.overview(span),
    jobs: (filter) => operating.jobs(filter),
    preview: (filter) => operating.preview(filter),
    about: (job) => operating.about(job),
    act: (who, action) => operating.act(who, action),
    action: (n) => operating.action(n),
    auditLog: (page) => operating.auditLog(page),
  };
  return {
    name: "operators",
    tables: OPERATE_TABLES,
    methods: { ...methods },
    load: () => operating.load(),
    nextAt: () => operating.nextAt(),
    run: () => operating.run(),
  };
}
