import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { MachineConfig } from '../../src/machine-config-api/machine-config.ts';

/** MachineConfigs of a pool, generated, and the name that the code of 4.16 gave to their rendered config. */
export interface Answer {
  readonly Pool: string;
  readonly Configs: readonly MachineConfig[];
  /** The images of the operating system and of its extensions in ControllerConfig. */
  readonly OS: string;
  readonly Ext: string;
  readonly name: string;
}

export const ANSWERS: URL = new URL('answers.json.gz', import.meta.url);

export function recordedAnswers(): Answer[] {
  return JSON.parse(gunzipSync(readFileSync(ANSWERS)).toString('utf8')) as Answer[];
}
