/** The part of the worker's environment that a wrapped server gets. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** Replaces each `$(NAME)` in `text` by the value of that variable. @throws {Error} naming a variable that is not set */
export function filled(text: string, env: Environment, what: string): string {
  return text.replace(/\$\((\w+)\)/g, (_all, name: string) => {
    const value = env[name];
    if (value === undefined) throw new Error(`${what}: the worker's environment has no ${name}`);
    return value;
  });
}

export function filledAll(values: Readonly<Record<string, string>>, env: Environment, what: string) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, filled(value, env, what)]));
}

/** The variables that every program gets. They describe the system and hold no secrets. */
const PASSED = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"];

export function programEnvironment(given: Readonly<Record<string, string>>, env: Environment): Record<string, string> {
  const passed = PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { ...Object.fromEntries(passed), ...given };
}
