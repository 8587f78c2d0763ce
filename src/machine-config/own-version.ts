import { VERSION } from '../kube/version.ts';
import type { ControllerVersion } from './render/decide.ts';

/** What this build writes on what it makes. It is not built from a commit of its own, so the version stands for both. */
export const OWN_VERSION: ControllerVersion = { version: VERSION, hash: VERSION };
