/** What Ignition does with a new machine: `first-boot.ts DOCUMENT ROOT` makes the root directory what the document says. */
import { readFileSync } from 'node:fs';
import { applyOnceFrom } from '../../../src/daemon/apply/once-from.ts';
import { linuxHost } from '../../../src/host/linux.ts';

const [document = '', root = ''] = process.argv.slice(2);
const FIRST_CONFIG = '/run/rotunda/first-boot.ign';

// Nothing runs in that root.
process.env.SYSTEMD_OFFLINE = '1';
const host = await linuxHost({ root });
await host.files.write(FIRST_CONFIG, readFileSync(document), { mode: 0o600 });
await applyOnceFrom(host, FIRST_CONFIG);
await host.files.remove(FIRST_CONFIG);
