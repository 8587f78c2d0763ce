/** Loaded before test files. */
import { after } from 'node:test';
import { setImmediate } from 'node:timers/promises';

const LOOK_EVERY_MS = 1000;
const parent = process.ppid;

// What the last test has left to fail gets its turn before the process is ended.
after(() => setImmediate());

// A command that was killed cannot end what it has started.
setInterval(() => {
  if (process.ppid !== parent) process.kill(-process.pid, 'SIGKILL');
}, LOOK_EVERY_MS).unref();
