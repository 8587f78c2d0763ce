import { clone } from '../difference.ts';
import { file, type GeneratedDocument, ignition3, type Part, unit, user } from '../ignition/documents.ts';
import { ignition2 } from '../ignition/documents2.ts';
import type { Random } from '../random.ts';
import { editedRegistriesConf, registriesConf } from './registries-text.ts';

export interface GeneratedConfig {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: Part & { config: GeneratedDocument };
}

const REGISTRIES_CONF = '/etc/containers/registries.conf';
const DATA = 'data:;base64,';

/** The file in which registries and mirrors are. */
export function registriesFile(text: string): Part {
  const source = DATA + Buffer.from(text).toString('base64');
  return { path: REGISTRIES_CONF, mode: 420, overwrite: true, contents: { source } };
}

/** A node's config and the one it is to get. */
export function configAndNext(r: Random): { Old: GeneratedConfig; New: GeneratedConfig } {
  const config = r.chance(0.06) ? ignition2(r, { bad: 0, rare: 0.1 }) : ignition3(r, { bad: 0, rare: 0.15 });
  config.ignition.version = config.ignition.version?.startsWith('2') ? '2.2.0' : r.pick(['3.2.0', '3.4.0']);
  if (r.chance(0.7)) {
    const others = (config.storage?.files ?? []).filter(({ path }) => path !== REGISTRIES_CONF);
    config.storage = { ...config.storage, files: [...others, registriesFile(registriesConf(r))] };
  }
  const old: GeneratedConfig = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered-worker-old' },
    spec: {
      osImageURL: r.pick(['img1', '']),
      config,
      kernelArguments: r.pick([undefined, [], ['a']]),
      extensions: r.pick([undefined, [], ['usbguard']]),
      fips: r.pick([undefined, false, true]),
      kernelType: r.pick([undefined, '', 'default', 'realtime']),
    },
  };
  return { Old: tidied(old), New: tidied(changed(r, old)) };
}

/** Without empty lists and objects: upstream takes an empty list for a change of an absent one. */
function tidied(config: GeneratedConfig): GeneratedConfig {
  const copy = clone(config);
  copy.spec.config = withoutEmpties(copy.spec.config) as GeneratedDocument;
  return copy;
}

function withoutEmpties(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpties);
  if (typeof value !== 'object' || value === null) return value;
  const isFull = (part: unknown) => typeof part !== 'object' || part === null || Object.keys(part).length > 0;
  const entries = Object.entries(value).map(([key, part]) => [key, withoutEmpties(part)] as const);
  return Object.fromEntries(entries.filter(([, part]) => isFull(part)));
}

function changed(r: Random, old: GeneratedConfig): GeneratedConfig {
  const next = clone(old);
  next.metadata.name = 'rendered-worker-new';
  const storage = { ...next.spec.config.storage, files: next.spec.config.storage?.files ?? [] };
  const systemd = { ...next.spec.config.systemd, units: next.spec.config.systemd?.units ?? [] };
  Object.assign(next.spec.config, { storage, systemd });
  for (let step = r.int(3) + (r.chance(0.9) ? 1 : 0); step > 0; step--) {
    r.pick(CHANGES)({ r, next, config: next.spec.config, files: storage.files, units: systemd.units });
  }
  return next;
}

interface Changing {
  readonly r: Random;
  readonly next: GeneratedConfig;
  readonly config: GeneratedDocument;
  readonly files: Part[];
  readonly units: Part[];
}

function put(list: Part[], key: string, item: Part): void {
  const at = list.findIndex(other => other[key] === item[key]);
  if (at < 0) list.push(item);
  else list[at] = item;
}

const putFile = ({ r, files }: Changing) => put(files, 'path', file(r, 0));
const dropFile = ({ r, files }: Changing) => files.splice(r.int(files.length), 1);

function changeRegistries({ r, files }: Changing): void {
  const { source = '' } = (files.find(({ path }) => path === REGISTRIES_CONF)?.contents ?? {}) as { source?: string };
  const old = source.startsWith(DATA) ? Buffer.from(source.slice(DATA.length), 'base64').toString() : '';
  const text = old.includes('unqualified') ? editedRegistriesConf(r, old) : registriesConf(r);
  put(files, 'path', registriesFile(text));
}

const SECTIONS: readonly Part[] = [
  { directories: [{ path: '/etc/dd' }] },
  { links: [{ path: '/etc/ll', target: '/x' }] },
  { links: [] },
  { disks: [] },
  { raid: [] },
  { luks: [{ name: 'l0', device: '/dev/sdc' }] },
  { directories: [] },
];

const CHANGES: readonly ((changing: Changing) => void)[] = [
  putFile,
  putFile,
  putFile,
  putFile,
  putFile,
  dropFile,
  dropFile,
  ({ files }) => files.reverse(),
  ({ r, units }) => put(units, 'name', unit(r, 0)),
  ({ units }) => units.pop(),
  ({ r, config }) => Object.assign(config, { passwd: { ...config.passwd, users: [user(r, 0.02)] } }),
  ({ config }) => delete config.passwd,
  ({ r, next }) => Object.assign(next.spec, { osImageURL: r.pick(['img1', 'img2', '']) }),
  ({ r, next }) => Object.assign(next.spec, { kernelArguments: r.pick([null, [], ['a'], ['b', 'a']]) }),
  ({ r, next }) => Object.assign(next.spec, { kernelType: r.pick(['', 'default', 'realtime', '64k-pages']) }),
  ({ r, next }) => Object.assign(next.spec, { extensions: r.some(['usbguard', 'wasm']) }),
  ({ r, next }) => Object.assign(next.spec, r.chance(0.3) && { fips: r.chance(0.5) }),
  ({ r, config }) => Object.assign(config, r.chance(0.4) && { kernelArguments: r.pick([{ shouldExist: ['a'] }, {}]) }),
  ({ r, config }) => Object.assign(config.storage ?? {}, r.chance(0.4) && r.pick(SECTIONS)),
  changeRegistries,
  changeRegistries,
  changeRegistries,
];
