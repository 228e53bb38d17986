/** Forms from JSON Schemas, for a job's question and a tool's arguments. */
import type { Child, FC } from "hono/jsx/dom";
import { useAction } from "./components.tsx";
import type { FormSchema } from "./server.ts";

interface FormProps {
  id: string;
  schema: FormSchema;
  values?: Record<string, unknown>;
  submit: string;
  /** Rejects with a message for people. */
  onSubmit(values: Record<string, unknown>): Promise<void>;
  children?: Child;
}

export const SchemaForm: FC<FormProps> = ({ id, schema, values = {}, submit, onSubmit, children }) => {
  const { attempt, isBusy, problem } = useAction();
  return (
    <form
      class="form"
      onSubmit={(event: Event) => {
        event.preventDefault();
        void attempt(() => onSubmit(valuesOf(schema, event.target as HTMLFormElement)));
      }}
    >
      <Fields id={id} schema={schema} values={values} />
      {problem}
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy}>
          {submit}
        </button>
        {children}
      </div>
    </form>
  );
};

/** The fields of a form without the form itself, for frames in which forms cannot be submitted. */
export const Fields: FC<Pick<FormProps, "id" | "schema" | "values">> = ({ id, schema, values = {} }) => {
  const valuesByName = new Map(Object.entries(values));
  return (
    <>
      {fieldsOf(schema).map(([name, field]) => (
        <Field
          key={name}
          id={`${id}-${name}`}
          name={name}
          field={field}
          value={valuesByName.get(name) ?? field.default}
          isRequired={listIn(schema.required).includes(name)}
        />
      ))}
    </>
  );
};

/** The values of a form, without optional fields that are empty. */
export function valuesOf(schema: FormSchema, form: HTMLFormElement): Record<string, unknown> {
  const data = new FormData(form);
  const entries = fieldsOf(schema).flatMap(([name, field]) => {
    const value = valueIn(field, data.getAll(name).map(String));
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(entries);
}

/** A field's type. If it accepts several, such as a number also as text, the first one. */
export const typeOf = ({ type }: FormSchema): string | undefined => (Array.isArray(type) ? type[0] : type);

/** A text of a schema. The schema may come from a foreign server, whose object in place of a text could be rendered as an element. */
export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** A value as text. An object may have its own `toString` that is not a function. */
const textFrom = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

export const fieldsOf = ({ properties }: FormSchema) =>
  Object.entries(properties ?? {}).filter(([, field]) => isSchema(field));
const isSchema = (value: unknown): value is FormSchema => typeof value === "object" && value !== null;
const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function choicesOf(field: FormSchema): { value: string; title: string }[] | undefined {
  const choices = listIn(field.oneOf ?? field.anyOf).filter((choice) => isSchema(choice) && "const" in choice);
  if (choices.length > 0) {
    return (choices as { const: unknown; title?: unknown }[]).map((choice) => {
      const value = textFrom(choice.const);
      return { value, title: textOf(choice.title) ?? value };
    });
  }
  const values = listIn(field.enum).map(textFrom);
  return values.length > 0 ? values.map((value) => ({ value, title: value })) : undefined;
}

function valueIn(field: FormSchema, texts: string[]): unknown {
  const [text = ""] = texts;
  switch (typeOf(field)) {
    case "boolean":
      return texts.length > 0;
    case "array":
      if (choicesOf(field.items ?? {})) return texts;
      // The server reads the text as a JSON list, or as the one text of a list.
      return text.trim() === "" ? undefined : text;
    case "number":
    case "integer":
      return text === "" ? undefined : Number(text);
    default:
      return text === "" ? undefined : text;
  }
}

interface FieldProps {
  id: string;
  name: string;
  field: FormSchema;
  value: unknown;
  isRequired: boolean;
}

const Field: FC<FieldProps> = ({ id, name, field, value, isRequired }) => {
  const label = textOf(field.title) ?? name.replaceAll("_", " ");
  const description = textOf(field.description);
  const hint = description && (
    <small id={`${id}-hint`} class="hint">
      {description}
    </small>
  );
  const common = { id, name, required: isRequired, "aria-describedby": description ? `${id}-hint` : undefined };
  if (typeOf(field) === "boolean") {
    return (
      <div class="field check">
        <input {...common} required={false} type="checkbox" checked={value === true} />
        <label for={id}>{label}</label>
        {hint}
      </div>
    );
  }
  const text = value === undefined ? "" : textFrom(value);
  const choices = choicesOf(typeOf(field) === "array" ? (field.items ?? {}) : field);
  if (choices && typeOf(field) === "array") {
    const selection = listIn(value).map(textFrom);
    return (
      <fieldset class="field">
        <legend>{label}</legend>
        {choices.map((choice) => (
          <label class="check" key={choice.value}>
            <input type="checkbox" name={name} value={choice.value} checked={selection.includes(choice.value)} />{" "}
            {choice.title}
          </label>
        ))}
        {hint}
      </fieldset>
    );
  }
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!isRequired && <span class="muted"> (optional)</span>}
      </label>
      {choices ? (
        <select {...common}>
          {!isRequired && <option value="" />}
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value} selected={choice.value === text}>
              {choice.title}
            </option>
          ))}
        </select>
      ) : (
        <input {...common} {...inputOf(field)} value={text} />
      )}
      {hint}
    </div>
  );
};

const INPUT_TYPES = new Map<unknown, string>(Object.entries({ email: "email", uri: "url", date: "date" }));

function inputOf({ minimum, maximum, minLength, maxLength, format, ...field }: FormSchema) {
  const type = typeOf(field);
  if (type === "number" || type === "integer") {
    return { type: "number", min: countIn(minimum), max: countIn(maximum), step: type === "integer" ? 1 : "any" };
  }
  return { type: INPUT_TYPES.get(format) ?? "text", minLength: countIn(minLength), maxLength: countIn(maxLength) };
}

const countIn = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
