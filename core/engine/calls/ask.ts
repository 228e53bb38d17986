import type { Answer, Question, TypedQuestion } from "../../author/context.ts";
import type { Command } from "../replay/commands/commands.ts";
import { formOf, parsedAnswer } from "./form.ts";
import type { Scope } from "./scope.ts";

export function ask<Content = Record<string, unknown>>(
  scope: Scope,
  name: string,
  question: Question | TypedQuestion<Content>,
): Promise<Answer<Content>> {
  const prepare = (command: Command) => {
    const form = formOf(name, question);
    command.question = form;
    command.work = {
      do: "record",
      entry: { kind: "ask", op: command.path, question: form },
      when: { until: scope.parts.pass.waitsUntil },
    };
  };
  const map = question && "schema" in question ? (answer: Answer) => parsedAnswer(name, question, answer) : undefined;
  return scope.issue<Answer<Content>, Answer>("ask", name, prepare, { map });
}
