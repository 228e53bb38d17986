/** The part of the worker's environment that a wrapped server gets. */

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Replaces each `$(NAME)` in `text` by the value of that variable.
 *
 * @throws {Error} naming the `server` and a variable that is not set
 */
export function expand(text: string, env: Environment, server: string): string {
  return text.replace(/\$\((\w+)\)/g, (_all, name: string) => {
    const value = env[name];
    if (value === undefined) throw new Error(`${server}: the worker's environment has no ${name}`);
    return value;
  });
}

export function expandAll(values: Readonly<Record<string, string>>, env: Environment, server: string) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, expand(value, env, server)]));
}

/** The variables that every program gets. They describe the system and hold no secrets. */
const INHERITED_VARIABLES = [
  "HOME",
  "LANG",
  "LC_ALL",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TERM",
  "TMPDIR",
  "TZ",
  "USER",
  "VIRTUAL_ENV",
];

export function programEnvironment(
  ownVariables: Readonly<Record<string, string>>,
  env: Environment,
): Record<string, string> {
  const inheritedEntries = INHERITED_VARIABLES.flatMap((name) =>
    env[name] === undefined ? [] : [[name, env[name]] as const],
  );
  return { ...Object.fromEntries(inheritedEntries), ...ownVariables };
}
