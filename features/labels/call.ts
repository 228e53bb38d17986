/** Labels jobs as the `_meta` of the request that starts them says. */
import { type CallFeature, LABELS_META, refusal, ToolError } from "../../core/tools/index.ts";
import { labelsIn } from "./labels.ts";

export const labelsOfCall: CallFeature = {
  context({ labels: wanted, scope }, tool) {
    if (wanted === undefined) return {};
    try {
      const labels = labelsIn(wanted);
      return labels.length > 0 ? { store: scope.store.with({ labels }) } : {};
    } catch (error) {
      throw new ToolError(refusal(tool?.name ?? "", [`_meta["${LABELS_META}"]: ${(error as Error).message}`]));
    }
  },
};
