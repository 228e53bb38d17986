import { cp, mkdir, readFile, rename, stat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import dockerignore from "@balena/dockerignore";
import { type Copy, DockerfileParser, type Instruction } from "dockerfile-ast";
import { execa } from "execa";

/** The result of a Dockerfile, as a folder instead of an image. */
export interface Built {
  /** The image's root. */
  root: string;
  workdir: string;
  env: Record<string, string>;
  command: string[];
  healthcheck: string[];
}

const EMPTY_IMAGE: Built = {
  root: "",
  workdir: "/",
  env: {},
  command: [],
  healthcheck: [],
};

/**
 * Runs the steps of a Dockerfile with this machine's programs. Every stage is a folder under `target`, and only the files of
 * the build context that the ignore file does not exclude can be copied.
 */
export async function buildInFolder(dockerfile: string, context: string, target: string): Promise<Built> {
  const instructions = DockerfileParser.parse(await readFile(dockerfile, "utf8")).getInstructions();
  const ignored = dockerignore.default().add(await readFile(join(context, ".dockerignore"), "utf8"));
  const stages = new Map<string, string>();
  let image: Built = { ...EMPTY_IMAGE, env: {} };
  for (const instruction of instructions) {
    const args = words(instruction);
    switch (instruction.getKeyword()) {
      case "FROM": {
        image = { ...EMPTY_IMAGE, root: join(target, `stage${stages.size}`), env: {} };
        stages.set(args[2] ?? `${stages.size}`, image.root);
        break;
      }
      case "WORKDIR":
        image.workdir = args[0] ?? "/";
        await mkdir(join(image.root, image.workdir), { recursive: true });
        break;
      case "ENV":
        for (const pair of args) image.env[pair.slice(0, pair.indexOf("="))] = pair.slice(pair.indexOf("=") + 1);
        break;
      case "COPY":
        await copy(args, (instruction as Copy).getFromFlag()?.getValue() ?? undefined);
        break;
      case "RUN":
        await execa({ cwd: join(image.root, image.workdir), env: image.env, shell: true })(args.join(" "));
        break;
      case "HEALTHCHECK":
        image.healthcheck = exec(instruction);
        break;
      case "CMD":
        image.command = exec(instruction);
        break;
      case "USER":
      case "EXPOSE":
      case "STOPSIGNAL":
        break;
      default:
        throw new Error(`${instruction.getKeyword()} is not supported here`);
    }
  }
  return image;

  async function copy(args: string[], stage: string | undefined): Promise<void> {
    const from = stage === undefined ? undefined : stages.get(stage);
    const destination = args.at(-1) ?? "";
    for (const source of args.slice(0, -1)) {
      const path = join(from ?? context, source);
      const isFolder = (await stat(path)).isDirectory();
      const into = join(image.root, image.workdir, destination);
      // A single file becomes the destination itself, unless that is a folder.
      const target = isFolder || !destination.endsWith("/") ? into : join(into, basename(source));
      if (from) {
        await rename(path, target); // nothing uses the earlier stage after this
        continue;
      }
      const filter = (file: string) => file === path || !ignored.ignores(relative(context, file));
      await cp(path, target, { recursive: true, filter });
    }
  }
}

const words = (instruction: Instruction) => instruction.getArguments().map((argument) => argument.getValue());

/** The command of an instruction in its exec form. */
function exec(instruction: Instruction): string[] {
  const text = instruction.getArgumentsContent() ?? "";
  return JSON.parse(text.slice(text.indexOf("["))) as string[];
}
