/** A caller's object in this process. */
import type { ViewMethods } from "../../core/jobs/index.ts";
import {
  CALLER_ROLE,
  methodsInRole,
  type ObjectCalls,
  type ObjectStorage,
  type Remote,
} from "../../core/resonate/index.ts";
import type { AdmissionMethods } from "../../features/blocked-callers/object.ts";
import type { EventMethods } from "../../features/events/object.ts";
import type { ScheduleMethods } from "../../features/schedules/object.ts";
import type { WebHookMethods } from "../../features/web-hooks/requests.ts";
import { openObject } from "../../functions/objects/composition.ts";
import type { RecordMethods } from "../../functions/objects/job-record.ts";

type CallerMethods = AdmissionMethods & RecordMethods & EventMethods & WebHookMethods & ScheduleMethods & ViewMethods;

/** The methods of a caller's object, and what the platform calls. */
export interface OpenCallerObject extends Remote<CallerMethods>, ObjectCalls {
  alarm(): Promise<void>;
}

/** Opens the object over a storage, by the bindings of its deployment. */
export function openCallerObject(storage: ObjectStorage, env: object): OpenCallerObject {
  const object = openObject({ storage }, env);
  const methods = methodsInRole<CallerMethods>(object, CALLER_ROLE);
  const own: Record<string, unknown> = {
    alarm: () => object.alarm(),
    call: (method: string, args: unknown[]) => object.call(method, args),
  };
  return new Proxy(methods as OpenCallerObject, {
    get: (_target, name) => Reflect.get(Object.hasOwn(own, name) ? own : methods, name),
  });
}
