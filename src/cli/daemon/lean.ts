/**
 * Node and malloc read their limits only when a process begins, so this one becomes itself again with smaller ones: an agent is on
 * every node and mostly rests, and this halves what it keeps. Same process, same id. `ROTUNDA_LEAN=off` leaves everything alone.
 */
export function beginLean(): void {
  if (process.env[LEAN] !== undefined || process.execve === undefined) return;
  const flags = ['--max-semi-space-size=1', '--expose-gc', ...process.execArgv];
  const env = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '65536', ...process.env, [LEAN]: 'on' };
  process.execve(process.execPath, [process.execPath, ...flags, ...process.argv.slice(1)], env);
}

/** Tells the process that began again from the one before. */
const LEAN = 'ROTUNDA_LEAN';
