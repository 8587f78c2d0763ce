/** The operator of the small operand as a process that can be killed: `operator.ts <directory>`. */
import { runAll } from '../../src/controller/controller.ts';
import { createLog } from '../../src/controller/log.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { EventWriter } from '../../src/kube/event-writer.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { informersOf, staticPodCaches } from '../../src/staticpod/caches.ts';
import { staticPodControllers } from '../../src/staticpod/controllers.ts';
import { operatorKubeconfig } from './layout.ts';
import { CONFIG, NAMESPACE } from './operand.ts';

const [dir = ''] = process.argv.slice(2);
// Whoever started this is gone.
process.once('disconnect', () => process.exit(1));
const log = createLog({ name: 'operator' });
const onError = (error: unknown) => log.warn({ err: error }, 'watching or writing an event failed');
const kube = new HttpKube(await loadAccess({ path: operatorKubeconfig(dir) }));
const events = new EventWriter(kube, { onError });
const recorder = events.recorder('operator', {
  apiVersion: 'v1',
  kind: 'Namespace',
  name: NAMESPACE,
  namespace: NAMESPACE,
});
const caches = staticPodCaches(CONFIG, kube, { onError });
const controllers = staticPodControllers(CONFIG, { kube, caches, clock: systemClock, events: recorder, log });
for (const informer of informersOf(caches)) informer.start();
await runAll(controllers, new AbortController().signal);
