import type { Passed } from "../../core/author/tool.ts";

const TEMPLATES = [
  {
    uriTemplate: "job://{name}{?offset,fields}",
    name: "job",
    title: "A job and its result",
    description:
      "How a job is, and its result as JSON. A result that is larger than an answer may be is there in part: read on with " +
      "offset, the next_offset of the part before. fields, separated by commas, picks some of it.",
    mimeType: "application/json",
  },
];

/** The kinds of resources, as `resources/templates/list` gives them. */
export const templatesOf = (passed: Passed | undefined): object[] => [
  ...TEMPLATES,
  ...(passed?.resourceTemplates ?? []),
];
