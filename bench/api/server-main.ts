/** The embedded API in a process of its own: started by `server.ts`, told over IPC what to do and what to measure. */
import { setImmediate } from 'node:timers/promises';
import { startApi } from '../../src/api/api.ts';
import { NAMESPACES, SECRETS } from '../../src/kube/resource.ts';
import { rateOf } from './measure.ts';
import { NAMESPACE, secret } from './secret.ts';
import type { Answers, Order } from './server.ts';

const FILL_AT_ONCE = 64;

const api = await startApi({ dir: process.argv[2] });
await api.kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
let count = 0;
const write = () => api.kube.create(SECRETS, secret(`in-process-${count++}`));

process.on('message', (order: Order | 'stop') => {
  void (order === 'stop' ? stop() : obey(order).then(answer => process.send?.(answer)));
});
process.send?.({ kubeconfigPath: api.kubeconfigPath });

async function obey(order: Order): Promise<Answers[keyof Answers]> {
  switch (order.name) {
    case 'write':
      return rateOf(order.writers, order.forMs, write);
    case 'fill': {
      let left = order.count;
      const worker = async () => {
        while (left-- > 0) await write();
      };
      await Promise.all(Array.from({ length: FILL_AT_ONCE }, worker));
      return {};
    }
    case 'memory': {
      // The first collection lets go of what finalizers hold, the second one frees it.
      for (let i = 0; i < 3; i++) {
        globalThis.gc?.();
        await setImmediate();
      }
      const { heapUsed, external, rss } = process.memoryUsage();
      return { kept: heapUsed + external, resident: rss };
    }
  }
}

async function stop(): Promise<void> {
  await api.close();
  process.disconnect();
}
