/**
 * What runs in a pod of the load: a client that has nothing but what its kubelet brings it. Writes its report beside the reports of
 * others, again and again, so that what it has seen outlives it.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { inClusterAccess } from '../../../src/kube/in-cluster.ts';
import { ApiLoad } from '../../cluster/real-load.ts';
import { REPORTS } from './load-places.ts';

const WRITE_EVERY_MS = 500;

const access = await inClusterAccess({ env: process.env });
const load = new ApiLoad(access.namespace, [{ name: hostname(), access }]);
const write = () => {
  const file = join(REPORTS, `${hostname()}.json`);
  writeFileSync(`${file}.new`, JSON.stringify(load.report()));
  renameSync(`${file}.new`, file);
};
const timer = setInterval(write, WRITE_EVERY_MS);
process.once('SIGTERM', () => {
  clearInterval(timer);
  void load.stop().finally(write);
});
