import { join } from 'node:path';
import { readIfThere, writeFileAtomically } from '../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../staticpod/node/files.ts';

/**
 * How far a cluster is on its way to serving itself. `founding`: the temporary API is the only one; `moving`: nobody changes the
 * temporary one any more, and it is being copied; `self-hosted`: the real one is the only one.
 */
export type Phase = 'founding' | 'moving' | 'self-hosted';

const FILE = 'self-hosting.json';
const PHASES: readonly string[] = ['founding', 'moving', 'self-hosted'] satisfies Phase[];

/** Undefined where nobody has begun to make a self-hosted cluster. */
export async function readPhase(dir: string): Promise<Phase | undefined> {
  const text = await readIfThere(systemFiles(), join(dir, FILE));
  if (text === undefined) return undefined;
  const { phase } = JSON.parse(text.toString()) as { phase: string };
  if (!PHASES.includes(phase)) throw new Error(`expected ${PHASES.join(', ')} in ${join(dir, FILE)}, found ${phase}`);
  return phase as Phase;
}

/** What was done before is known after a crash. */
export async function writePhase(dir: string, phase: Phase): Promise<void> {
  await writeFileAtomically(systemFiles(), join(dir, FILE), Buffer.from(`${JSON.stringify({ phase })}\n`), 0o600);
}
