import { checkMachineConfig } from '../../../src/machine-config/render/merge.ts';
import { contentsOf } from '../../../src/machine-config-api/ignition/contents.ts';
import { downgraded } from '../../../src/machine-config-api/ignition/downgrade.ts';
import { readIgnition } from '../../../src/machine-config-api/ignition/read.ts';
import { readIgnitionBytes } from '../../../src/machine-config-api/ignition/read-bytes.ts';
import type { IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import { attempt, clone, same, unlike, unlikeAt, verdicts } from '../difference.ts';
import { gzipped } from '../gzip.ts';
import { type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';
import { type GeneratedDocument, ignition3 } from './documents.ts';
import { ignition2 } from './documents2.ts';

/** A document becomes the same config, or is refused by both. */
function reading(name: string, generate: (r: Random) => GeneratedDocument): Judged {
  return judged<GeneratedDocument>({
    name,
    program: 'mcodiff',
    op: 'parse',
    generate,
    compare: (document, { out, err }) => {
      const mine = attempt(() => {
        checkMachineConfig({ metadata: { name: 'x' }, spec: { config: document } });
        return readIgnition(document);
      });
      const differences = verdicts(mine, err, out);
      if (differences.length > 0 || mine.kind !== 'value') return differences;
      return unlikeAt(same(mine.value, out, true) ? 'only empties differ' : 'result differs', mine.value, out);
    },
  });
}

/** The contents of a file. */
const contents = judged<{ Source?: string; Compression?: string }>({
  name: 'file contents',
  program: 'mcodiff',
  op: 'contents',
  generate: r => ({
    ...(r.chance(0.97) && { Source: r.chance(0.03) ? r.pick(['', 'https://x', 'x']) : dataUrl(r) }),
    ...(r.chance(0.5) && { Compression: r.pick(['', 'gzip', 'gzip', 'xz']) }),
  }),
  compare: ({ Source, Compression }, { out, err }) => {
    const mine = attempt(() =>
      contentsOf({
        ...(Source !== undefined && { source: Source }),
        ...(Compression !== undefined && { compression: Compression }),
      }).toString('base64'),
    );
    const differences = verdicts(mine, err, out);
    return differences.length > 0 || mine.kind !== 'value' ? differences : unlike('bytes', mine.value, out ?? '');
  },
});

const PIECES = [
  'a',
  '%20',
  '%',
  '%zz',
  ' ',
  'ä',
  ',',
  ';',
  '+',
  '/',
  '=',
  '\n',
  '%00',
  '#',
  '?',
  '"',
  '<',
  '~',
  '\\',
  '{',
];
const HEADS = [
  'data:',
  'data:',
  'data:text/plain',
  'data:text/plain;charset=utf-8',
  'data:;charset=utf-8',
  'data:application/x-y',
  'data:foo/bar',
  'data:text',
  'data:text/',
  'DATA:',
  'data:;x="a,b"',
  'data:;x',
  'data:text/plain;base64;charset=x',
  'data:;=x',
  'data: ',
  'data:text/plain; charset=utf-8',
  'data:image/png;x=%41',
  'data:;base64x',
];

function dataUrl(r: Random): string {
  const text = () => r.list(9, () => r.pick(PIECES)).join('');
  const base64 = () => {
    const whole = Buffer.from(text()).toString('base64');
    if (r.chance(0.2)) return whole.replace(/=+$/, '');
    if (r.chance(0.1)) return whole.replace(/\+/g, '-');
    return r.chance(0.1) ? `${whole.slice(0, 4)}\n${whole.slice(4)}` : whole;
  };
  const gzip = () => gzipped(text());
  const tail = () => (r.chance(0.5) ? gzip() : Buffer.alloc(3));
  const body = r.pick([
    () => `,${text()}`,
    () => `;base64,${base64()}`,
    () => `;base64,${gzip().toString('base64')}`,
    () => `;base64,${gzip().subarray(0, 12).toString('base64')}`,
    () => `;base64,${Buffer.concat([gzip(), tail()]).toString('base64')}`,
    text,
  ]);
  return r.pick(HEADS) + body();
}

/** Whole documents as they come from elsewhere: plain, compressed, in base64, cut off. The input is their bytes. */
const bytes = judged<string>({
  name: 'ignition bytes',
  program: 'mcodiff',
  op: 'gzipped',
  generate: r => {
    const text = r.chance(0.05)
      ? r.pick(['{}', '', 'null', '[]', '  ', 'x'])
      : JSON.stringify(ignition3(r, { bad: 0.003, rare: 0.1 }));
    const json = Buffer.from(text);
    const encoded = (document: Buffer) => Buffer.from(document.toString('base64'));
    const form = r.pick([
      () => json,
      () => gzipped(json),
      () => encoded(gzipped(json)),
      () => encoded(json),
      () =>
        Buffer.from(
          gzipped(json)
            .toString('base64')
            .replace(/(.{76})/g, '$1\n'),
        ),
      () => gzipped(json).subarray(0, 40),
    ]);
    return form().toString('base64');
  },
  compare: (input, { out, err }) => {
    const mine = attempt(() => readIgnitionBytes(Buffer.from(input, 'base64')));
    return verdicts(mine, err, out);
  },
});

/** A config for machines with an older Ignition. */
const downgrade = judged<{ Raw: GeneratedDocument; Version: string }>({
  name: 'ignition downgrade',
  program: 'mcodiff',
  op: 'down',
  generate: r => {
    const document = ignition3(r, { bad: 0, rare: 0.12 });
    document.ignition.version = '3.4.0';
    return { Raw: document, Version: r.pick(['2.2', '3.1', '3.2', '3.3', '3.4']) };
  },
  compare: ({ Raw, Version }, { out, err }) => {
    const read = attempt(() => readIgnition(Raw));
    if (read.kind !== 'value') return [];
    const mine = attempt(() =>
      clone(downgraded(read.value as IgnitionConfig, `${Version}.0` as Parameters<typeof downgraded>[1])),
    );
    const differences = verdicts(mine, err, out);
    const found =
      differences.length > 0 || mine.kind !== 'value' ? differences : unlikeAt('result', mine.value, out, true);
    return found.map(difference => ({ ...difference, class: `to ${Version}: ${difference.class}` }));
  },
});

export const IGNITION: readonly Judged[] = [
  reading('ignition 3', r => ignition3(r, { bad: 0.004, rare: 0.25 })),
  reading('ignition 3, often wrong', r => ignition3(r, { bad: 0.05, rare: 0.3 })),
  reading('ignition 2.2', r => {
    const document = ignition2(r, { bad: 0.006, rare: 0.15 });
    if (/^2\.[01]/.test(document.ignition.version ?? '')) document.ignition.version = '2.2.0';
    return document;
  }),
  reading('ignition 2.0 and 2.1', r => {
    const document = ignition2(r, { bad: 0.004, rare: 0.1 });
    document.ignition.version = r.pick(['2.0.0', '2.1.0']);
    return document;
  }),
  contents,
  bytes,
  downgrade,
];
