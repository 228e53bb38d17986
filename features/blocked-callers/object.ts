import type { ObjectPart } from "../../core/jobs/index.ts";
import type { RefusalOf } from "../../functions/auth/admission.ts";

/** The remote method of a caller's object that says whether the caller is still admitted. */
export interface AdmissionMethods {
  /** By the current deployment: an edge of an earlier one may still hold streams. */
  refusalOf(key: string): Promise<string | undefined>;
}

export function admission(refusalOf: RefusalOf): ObjectPart {
  const methods: AdmissionMethods = { refusalOf };
  return { name: "blocked-callers", methods: { ...methods } };
}
