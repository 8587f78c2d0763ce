import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type PluginCall, runPlugin } from '../../src/kube/exec-credential.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

const run = (script: string, change: Partial<PluginCall> = {}) =>
  runPlugin({
    command: process.execPath,
    args: ['-e', script],
    env: process.env,
    timeoutMs: PATIENCE_MS,
    largestOutput: 1000,
    ...change,
  });

describe('a credential plugin as a process', () => {
  it('gives its standard output, also in pieces, and sees its environment', async () => {
    const script = 'process.stdout.write(process.env.A); setImmediate(() => process.stdout.write("bä"))';
    assert.equal(await run(script, { env: { ...process.env, A: 'a' } }), 'abä');
  });
  it('fails with its code or signal', async () => {
    await assert.rejects(run('process.exit(3)'), { message: 'ended with code 3' });
    await assert.rejects(run('process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)'), {
      message: 'ended with SIGTERM',
    });
  });
  it('that hangs, or leaves a child holding its output, is ended', async () => {
    await assert.rejects(run('setInterval(() => {}, 1000)', { timeoutMs: 300 }), /gave no answer within 0.3 s/);
    const orphan =
      'require("child_process").spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { stdio: "inherit", detached: true })';
    await assert.rejects(run(orphan, { timeoutMs: 500 }), /gave no answer within 0.5 s/);
  });
  it('that writes too much is ended', async () => {
    await assert.rejects(run('for (;;) console.log("x".repeat(10000))'), { message: 'wrote more than 1000 bytes' });
  });
  it('that is not there', async () => {
    await assert.rejects(run('', { command: '/does/not/exist' }), { message: 'cannot be started (ENOENT)' });
  });
  it('has no standard input', async () => {
    assert.equal(await run('process.stdin.on("end", () => console.log("end")).resume()'), 'end\n');
  });
});
