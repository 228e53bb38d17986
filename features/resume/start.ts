/** Names the attempt whose finished steps a new one does not repeat, and reads how that went. */

import type { JobFeature, Resumption } from "../../core/jobs/index.ts";
import { decodeValue, RESUMES_TAG, resumptionId } from "../../core/resonate/index.ts";

export const resume: JobFeature = {
  start({ previous, tags }, next) {
    if (previous?.isResumed) tags[RESUMES_TAG] = previous.attempt.id;
    return next();
  },
  async look({ promise, signal, jobs }, next) {
    if (promise.record.tags[RESUMES_TAG] === undefined) return next();
    const [current, record] = await Promise.all([next(), jobs.child(resumptionId(promise.id), signal)]);
    return record ? { ...current, resumption: withoutSeed(decodeValue(record.param) as Resumption) } : current;
  },
};

/** What a caller may know: the seed is secret. */
const withoutSeed = (resumption: Resumption) => ("from" in resumption ? { from: resumption.from } : resumption);
