/** What a client can do, by the capabilities that its request declares. */
import { CARD, TASKS, UI } from "./mcp.ts";

/** The capabilities that a request declares. */
export interface Declared {
  elicitation?: { form?: object | undefined; url?: object | undefined } | undefined;
  extensions?: Record<string, unknown> | undefined;
}

export interface Abilities {
  declaresTasks: boolean;
  showsForms: boolean;
  /** It must name the type of cards: some clients name the extension and hide nothing from their models. */
  showsCards: boolean;
}

/** Whether a client can show its user a form. That is the default for a client that names no kind of question. */
export function showsForms({ elicitation }: Declared = {}): boolean {
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

export const knowsTasks = (declared?: Declared): boolean => declared?.extensions?.[TASKS] !== undefined;

export function abilitiesOf(declared?: Declared): Abilities {
  const cards = declared?.extensions?.[UI] as { mimeTypes?: string[] } | undefined;
  return {
    declaresTasks: knowsTasks(declared),
    showsForms: showsForms(declared),
    showsCards: cards?.mimeTypes?.includes?.(CARD) === true,
  };
}
