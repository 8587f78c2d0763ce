/** Loaded before test files: what the last test has left to fail gets its turn before the process is ended. */
import { after } from 'node:test';
import { setImmediate } from 'node:timers/promises';

after(() => setImmediate());
