/** A question of a job, answered in the card. */
import { useState } from "hono/jsx/dom";
import { Fields, valuesOf } from "../lib/form.tsx";
import type { FormSchema } from "../lib/server.ts";

export interface QuestionProps {
  id: string;
  message: string;
  schema: FormSchema;
  /** `content` is null when the user declines. */
  onAnswer(content: Record<string, unknown> | null): Promise<void>;
}

export function Question({ id, message, schema, onAnswer }: QuestionProps) {
  const [isSending, setSending] = useState(false);
  const send = async (content: Record<string, unknown> | null) => {
    setSending(true);
    await onAnswer(content);
    setSending(false);
  };
  // The frames of some hosts do not allow forms to be submitted.
  const answer = (event: Event) => {
    const form = (event.currentTarget as HTMLElement).closest("form") as HTMLFormElement;
    if (form.reportValidity()) void send(valuesOf(schema, form));
  };
  return (
    <form>
      <p>{message}</p>
      <Fields id={id} schema={schema} />
      <div class="actions">
        <button type="button" class="main" disabled={isSending} onClick={answer}>
          Answer
        </button>
        <button type="button" disabled={isSending} onClick={() => void send(null)}>
          Decline
        </button>
      </div>
    </form>
  );
}
