import type { Random } from '../random.ts';

/** A `registries.conf`. */
export function registriesConf(r: Random): string {
  const search = JSON.stringify(['x.io', 'y.io', 'z.io'].slice(0, 1 + r.int(3)));
  const lines = [
    `unqualified-search-registries = ${search}`,
    ...(r.chance(0.05) ? ['short-name-mode = "enforcing"'] : []),
    ...(r.chance(0.03) ? ['credential-helpers = ["a"]'] : []),
    ...r.list(3, () => registry(r)),
  ];
  return `${lines.join('\n')}\n`;
}

/** A small change of one; sometimes quite another one, sometimes none. */
export function editedRegistriesConf(r: Random, text: string): string {
  if (r.chance(0.15)) return registriesConf(r);
  const registries = (whole: string) => whole.split(/(?=\[\[registry\]\])/);
  const edits = [
    () =>
      registries(text)
        .filter((_, i) => i === 0 || r.chance(0.7))
        .join(''),
    () => text + registries(registriesConf(r)).slice(1).join(''),
    () => text.replace(/pull-from-mirror = "[^"]*"/, `pull-from-mirror = "${r.pick(PULLS)}"`),
    () => {
      const search = ['x.io', 'y.io', 'z.io', 'w.io'].slice(r.chance(0.2) ? 1 : 0, 1 + r.int(4));
      return text.replace(
        /unqualified-search-registries = .*/,
        `unqualified-search-registries = ${JSON.stringify(search)}`,
      );
    },
    () =>
      text.replace(/\[\[registry\.mirror\]\]\nlocation = "[^"]*".*?(?=\n\[|$)/s, mirror =>
        r.chance(0.5)
          ? `${mirror}\n[[registry.mirror]]\nlocation = "m9.io"\npull-from-mirror = "${r.pick(['digest-only', 'all'])}"`
          : '',
      ),
    () =>
      text.replace(
        /(insecure|blocked|mirror-by-digest-only) = (true|false)/,
        (_, name: string, value: string) => `${name} = ${value === 'true' ? 'false' : 'true'}`,
      ),
  ];
  return r.pick(edits)();
}

const PULLS = ['digest-only', 'tag-only', 'all', ''];

function registry(r: Random): string {
  const flag = (name: string, probability: number) => (r.chance(probability) ? [`${name} = ${r.chance(0.5)}`] : []);
  const mirror = () => [
    '[[registry.mirror]]',
    `location = "${r.pick(['m1.io', 'm2.io', 'm3.io'])}"`,
    ...flag('insecure', 0.15),
    ...(r.chance(0.75) ? [`pull-from-mirror = "${r.pick(['digest-only', 'digest-only', ...PULLS])}"`] : []),
  ];
  return [
    '[[registry]]',
    ...(r.chance(0.3) ? [`prefix = "${r.pick(['', '', 'p.io', '*.w.io'])}"`] : []),
    ...(r.chance(0.95) ? [`location = "${r.pick(['a.io', 'b.io', 'c.io/x', 'd.io:5000'])}"`] : []),
    ...flag('blocked', 0.15),
    ...flag('insecure', 0.15),
    ...flag('mirror-by-digest-only', 0.2),
    ...r.list(3, mirror).flat(),
  ].join('\n');
}
