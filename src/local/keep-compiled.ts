/**
 * Loaded before a program of ours on a local node: writes what was compiled for it to NODE_COMPILE_CACHE soon after its start. Node
 * does that at the end of a process, and most programs on a node have none; the next ones would compile everything again.
 */
import { flushCompileCache } from 'node:module';

const AFTER_MS = 1500;

if (process.env.NODE_COMPILE_CACHE !== undefined) setTimeout(() => flushCompileCache(), AFTER_MS).unref();
