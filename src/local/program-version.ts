import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { VERSION as API_VERSION } from '../api/http/version.ts';
import { seconds } from '../kube/duration.ts';
import type { Program } from './programs.ts';

const run = promisify(execFile);
/** For a program that only has to print a line; on a machine that is busy. */
const PATIENCE_MS = seconds(30);
const LONGEST_OUTPUT = 10_000;

/** The version of kube-apiserver that nodes here run: what the program says of itself, or what its stand-in is modelled on. */
export async function kubeApiserverVersion(program: Program | undefined): Promise<string> {
  if (program === undefined || program.isStandIn) return API_VERSION.gitVersion.slice(1);
  const [command = '', ...words] = program.argv;
  const { stdout } = await run(command, [...words, '--version'], { timeout: PATIENCE_MS, maxBuffer: LONGEST_OUTPUT });
  const [, version] = /v(\d+\.\d+\.\d+[\w.+-]*)/.exec(stdout) ?? [];
  if (version === undefined)
    throw new Error(`expected "Kubernetes v<version>" from ${command} --version, found ${JSON.stringify(stdout)}`);
  return version;
}
