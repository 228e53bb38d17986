/** The edge's side of a deployment's objects. */
import type { CallerLimits, CallerRecord, CallerRecords } from "../../core/jobs/index.ts";
import {
  CALLER_ROLE,
  type CallableObjects,
  methodsInRole,
  objectName,
  type Remote,
  resultOf,
} from "../../core/resonate/index.ts";
import type { RecordMethods } from "./job-record.ts";

/**
 * The objects of a deployment: those of its callers, and those for all of them. The namespace at the Resonate server identifies the
 * deployment. Their methods throw {@link ResonateUnavailable} if an object cannot be reached.
 */
export class Callers {
  readonly #objects: CallableObjects;
  readonly #namespace: string;

  constructor(objects: CallableObjects, namespace: string) {
    this.#objects = objects;
    this.#namespace = namespace;
  }

  /** The methods of the object of the caller with this key. Valid within one request, to which the platform binds them. */
  of<Methods extends object>(key: string): Remote<Methods> {
    return this.inRole(CALLER_ROLE, key);
  }

  /** The methods of the object with another role, which is the only one of that role. */
  inRole<Methods extends object>(role: string, key = ""): Remote<Methods> {
    const object = this.#objects.get(this.#objects.idFromName(objectName(role, this.#namespace, key)));
    return methodsInRole(object, role);
  }

  /** The records of the deployment's callers, each of whom has these limits. */
  records(limits: CallerLimits): CallerRecords {
    return { limits, of: (key, charge) => recordBy(() => this.of(key), key, charge) };
  }
}

/** The record of the caller with this key, by the methods of its object. */
export function recordBy(
  methods: () => Remote<RecordMethods>,
  key: string,
  charge?: (requests: number) => void,
): CallerRecord {
  return {
    async reserve(job, limits) {
      const { answer, requests } = await methods().reserve(key, job, limits);
      if (requests > 0) charge?.(requests);
      return resultOf(answer);
    },
    stored: () => methods().stored(),
    forget: (id, isHidden) => methods().forget(id, isHidden),
    list: (query) => methods().list(key, query),
    note: (jobs, onlyKnown = false) => methods().note(jobs, onlyKnown),
  };
}

/** Undefined if no Durable Object is bound as `CALLER`. */
export const callersOf = ({ CALLER, RESONATE_NAMESPACE }: { CALLER?: unknown; RESONATE_NAMESPACE: string }) =>
  CALLER ? new Callers(CALLER as CallableObjects, RESONATE_NAMESPACE) : undefined;

/** A warning of what does not work without `CALLER`; undefined if it is bound. */
export const withoutRecords = ({ CALLER }: { CALLER?: unknown }): string | undefined =>
  CALLER
    ? undefined
    : "wrangler.toml binds no CALLER (class CallerObject): jobs are not counted (MAX_JOBS, MAX_STORED_BYTES), there are no " +
      "events and no schedules, and list_jobs searches the Resonate server, if that allows it";
