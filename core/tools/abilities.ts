/** What a client can do, by the capabilities that its request declares. */
import { isRecord } from "../resonate/json.ts";
import { CARD_MIME_TYPE, TASKS_EXTENSION, UI_EXTENSION } from "./mcp.ts";

/** The capabilities that a request declares. */
export interface DeclaredCapabilities {
  elicitation?: { form?: object | undefined; url?: object | undefined } | undefined;
  extensions?: Record<string, unknown> | undefined;
}

export interface Abilities {
  declaresTasks: boolean;
  /** Whether it can show its user a form. */
  showsForms: boolean;
  /** It must name the type of cards: some clients name the extension and hide nothing from their models. */
  showsCards: boolean;
}

/** `declared` may be any value that a request has in its place. */
export function abilitiesOf({ elicitation, extensions }: DeclaredCapabilities = {}): Abilities {
  const { mimeTypes } = Object(extensions?.[UI_EXTENSION]);
  return {
    declaresTasks: extensions?.[TASKS_EXTENSION] !== undefined,
    // A form is the default for a client that names no kind of question.
    showsForms: isRecord(elicitation) && (elicitation.form !== undefined || elicitation.url === undefined),
    showsCards: Array.isArray(mimeTypes) && mimeTypes.includes(CARD_MIME_TYPE),
  };
}
