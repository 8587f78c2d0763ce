/**
 * What does one agent cost? Memory of the real command at rest, from the sources and as it is shipped (bundled); what it does to the
 * processor then; how long from another target to Done for an update without and one with drain and reboot (the node is a directory,
 * so the reboot itself takes no time; the drain controller waits 20 ms instead of 5 s).
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleProgram } from '../src/cli/bundle.ts';
import type { MachineConfig } from '../src/machine-config-api/machine-config.ts';
import { ProcessCluster, type ProcessNode } from '../test/daemon/agent/node-process.ts';
import { config } from '../test/daemon/agent/scene.ts';
import { eventually } from '../test/tools/eventually.ts';

const UPDATES = 5;
const FILES = 50;
const GOAL_MIB = 80;
const SETTLE_MS = 5000;
const IDLE_MS = 5000;
/** Linux counts the time of processes in these. */
const TICK_MS = 10;

export async function bench(): Promise<void> {
  const cluster = await ProcessCluster.start();
  const out = mkdtempSync(join(tmpdir(), 'rotunda-bundle-'));
  try {
    const program = await bundleProgram(out);
    const ways = [
      { what: 'from the sources', start: {} },
      { what: 'bundled, as shipped', start: { program } },
      { what: 'bundled, with the limits Node has by itself', start: { program, env: { ROTUNDA_LEAN: 'off' } } },
    ];
    for (const [index, { what, start }] of ways.entries()) {
      const prefix = `n${index}`;
      const node = await cluster.node(prefix, generation(0, prefix));
      const began = performance.now();
      node.start(start);
      await eventually('it manages its node', () => node.log.includes('In desired state'));
      console.log(`\n${what}: manages its node ${Math.round(performance.now() - began)} ms after its start`);
      const secret = (serial: number) => ({ '/var/lib/kubelet/config.json': String(serial) });
      await updates(node, 'another pull secret, to Done', serial =>
        generation(0, `${prefix}-p${serial}`, secret(serial)),
      );
      await updates(node, 'all 50 files, drained and rebooted, to Done', serial => generation(serial, `${prefix}-r`));
      await pause(SETTLE_MS);
      report(node);
      const before = cpuMs(node);
      await pause(IDLE_MS);
      console.log(`processor time at rest: ${(((cpuMs(node) - before) / IDLE_MS) * 100).toFixed(2)} %`);
      await node.kill('SIGTERM');
    }
  } finally {
    await cluster.close();
    rmSync(out, { recursive: true, force: true });
  }
}

async function updates(node: ProcessNode, what: string, next: (serial: number) => MachineConfig): Promise<void> {
  const times: number[] = [];
  for (let serial = 1; serial <= UPDATES; serial++) {
    const wanted = next(serial);
    const began = performance.now();
    await node.target(wanted);
    await node.isDone(wanted);
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  console.log(
    `${what}: median ${Math.round(times[UPDATES >> 1] ?? 0)} ms, slowest ${Math.round(times.at(-1) ?? 0)} ms of ${UPDATES}`,
  );
}

function report(node: ProcessNode): void {
  const status = readFileSync(`/proc/${node.pid}/status`, 'utf8');
  const mib = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
  const [own, runtime] = [mib('RssAnon'), mib('RssFile')];
  console.log(
    `memory: ${mib('VmRSS').toFixed(0)} MiB resident (goal ${GOAL_MIB}): ${own.toFixed(0)} MiB its own, ${runtime.toFixed(0)} MiB ` +
      'of the Node program that all its processes on a machine share',
  );
}

function cpuMs(node: ProcessNode): number {
  const fields = readFileSync(`/proc/${node.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function generation(serial: number, prefix: string, more: Record<string, string> = {}): MachineConfig {
  const files = Object.fromEntries(
    Array.from({ length: FILES }, (_, index) => [`/etc/f/${index}`, `${serial} `.repeat(1000)]),
  );
  return config(`rendered-${prefix}-${serial}`, { ...files, ...more });
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}
