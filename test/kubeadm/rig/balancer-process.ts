/** The load balancer of a rig in a process of its own: a test that is busy must not keep the cluster waiting. Ends with its parent. */
import { type Backend, startLoadBalancer } from '../../../src/local/real/load-balancer.ts';

const [host = '', port = ''] = process.argv.slice(2);
/** It reads them again every time. */
const backends: Backend[] = [];
await startLoadBalancer({ host, port: Number(port), backends });
process.on('message', (addresses: string[]) => {
  backends.splice(0, backends.length, ...addresses.map(address => ({ host: address, port: Number(port) })));
});
process.once('disconnect', () => process.exit());
process.send?.('listening');
