/** The programs of a control-plane node as one command, the way `rotunda` offers them. */
import { certSyncerMain, installerMain, pruneMain } from '../../src/staticpod/node/main.ts';

const [command, ...argv] = process.argv.slice(2);
const lists = {
  configMaps: [{ name: 'client-ca' }],
  secrets: [{ name: 'serving' }, { name: 'localhost-serving' }, { name: 'user-serving', optional: true }],
};
switch (command) {
  case 'installer':
    process.exitCode = await installerMain(argv, process.env);
    break;
  case 'prune':
    process.exitCode = await pruneMain(argv, process.env);
    break;
  case 'cert-syncer':
    process.exitCode = await certSyncerMain(argv, process.env, lists);
    break;
  default:
    process.stderr.write(`unknown command ${command}\n`);
    process.exitCode = 2;
}
