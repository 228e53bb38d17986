/** The refusal of a start for whose job there is no room. */
import { NotStarted } from "../../definitions/job.ts";

/** The caller's jobs take as many bytes as they may. */
export class StorageExceeded extends NotStarted {
  override name = "StorageExceeded";

  constructor(most: number) {
    super(
      `what is stored of your jobs comes to the ${most} bytes that a caller may have (MAX_STORED_BYTES). ` +
        "Room comes back when ended jobs are removed: by forget_jobs, and by the deployment's retention",
    );
  }
}
