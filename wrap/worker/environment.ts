/** Values of the worker's environment, where the options name them. */

type Environment = Readonly<Record<string, string | undefined>>;

/** `text` with the variables that it names as `$(NAME)`. @throws {Error} naming one that is not set */
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

/** What of the worker's environment a program gets besides what it is given: where things are, and no secret. */
const KEPT = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"];

export function programEnvironment(given: Readonly<Record<string, string>>, env: Environment): Record<string, string> {
  const kept = KEPT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { ...Object.fromEntries(kept), ...given };
}
