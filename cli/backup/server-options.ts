/** The options of `backup`, `restore` and `move` that select the server whose jobs they read or write. */
import { option, optionOr } from "../arguments.ts";
import { DATA } from "../launcher/data-directory.ts";

export const SOURCE_OPTIONS = {
  url: option("URL", "the deployment; needs an operator's token in OPERATOR_TOKEN (npm run deploy -- --operator NAME)"),
  data: optionOr(
    DATA,
    "DIR",
    `without --url: the state of the embedded server (default ${DATA}), which must be stopped`,
  ),
};
