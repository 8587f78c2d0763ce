/**
 * A process that is there to be killed: it brings a node to an end of what was interrupted, and then from one config to the other
 * and back for ever. `node updater.ts ROOT`
 */
import { writeSync } from 'node:fs';
import { applyConfig, finishUpdate, recoverInterrupted } from '../../../src/daemon/apply/apply-config.ts';
import { readStored } from '../../../src/daemon/apply/stored.ts';
import { localHost } from '../../../src/host/local.ts';
import { isReading, observed } from '../../../src/host/memory.ts';
import { config } from './configs.ts';

/** Tells of every change it is about to make by one byte, so that it can be killed in it. */
const host = observed(localHost({ root: process.argv[2] as string }), operation => {
  if (!isReading(operation)) writeSync(1, '.');
});
for (;;) {
  await recoverInterrupted(host);
  await finishUpdate(host);
  const from = (await readStored(host))?.config;
  if (from === undefined) throw new Error('the node has lost its config');
  await applyConfig(host, from, config(from.metadata?.name === 'rendered-a' ? 'b' : 'a'), { pendingAction: 'none' });
}
