import { basename } from 'node:path';
import { CURRENT_SLOT, privateKeyDigest, publicKeyDigests } from '../../kubeadm/service-account-keys.ts';
import { readFolder } from '../look/folder.ts';
import type { OutputFormat } from '../output/format.ts';
import { type Listing, printDocument, printItems } from '../output/print.ts';
import { paragraph } from './files.ts';

/** What `sa.key` or `sa.pub` is: a key and no certificate, so that nothing of it ends. */
export interface AccountKeyExplanation {
  readonly file: string;
  readonly state: 'Good' | 'Unusable';
  readonly problem?: string | undefined;
  /** The SHA-256 of each public key in it, or of the public half. */
  readonly keys: readonly string[];
  readonly purpose: string;
  readonly readBy: readonly string[];
  readonly renewedBy: string;
  readonly ifReplaced: string;
}

const FACTS = {
  [CURRENT_SLOT.pub]: {
    what: 'a public key',
    purpose: 'kube-apiserver verifies the tokens of service accounts with it. With several, it accepts tokens of each.',
    readBy: ['kube-apiserver --service-account-key-file (a change is taken at its next start)'],
  },
  [CURRENT_SLOT.key]: {
    what: 'a private key',
    purpose: 'It signs the tokens of service accounts.',
    readBy: [
      'kube-apiserver --service-account-signing-key-file, for tokens of pods (a change is taken at its next start)',
      'kube-controller-manager --service-account-private-key-file, for tokens in Secrets (a change is taken at its next start)',
    ],
  },
} as const;
const RENEWED_BY = 'nobody, for it does not end; in an adopted cluster rotunda rotate sa hands it over';
const IF_REPLACED =
  'without a hand-over every token of the key before is refused: pods, controllers, and whoever has one from a Secret, until they have another one';

export function isAccountKeyFile(path: string): boolean {
  return basename(path) in FACTS;
}

export function explainAccountKey(path: string): AccountKeyExplanation {
  const file = basename(path);
  const { text, problem } = readFolder(path).files[0] ?? {};
  const isPublic = file === CURRENT_SLOT.pub;
  const signs = isPublic ? undefined : privateKeyDigest(text);
  const keys = isPublic ? publicKeyDigests(text ?? '') : signs === undefined ? [] : [signs];
  const { what, purpose, readBy } = FACTS[file] as (typeof FACTS)[keyof typeof FACTS];
  const wrong = problem ?? (keys.length === 0 ? `expected ${what} in PEM, found none` : undefined);
  const state = wrong === undefined ? 'Good' : 'Unusable';
  return { file, state, problem: wrong, keys, purpose, readBy, renewedBy: RENEWED_BY, ifReplaced: IF_REPLACED };
}

export function renderAccountKeys(items: readonly AccountKeyExplanation[], format: OutputFormat): string {
  if (format.kind === 'table' || format.kind === 'wide') return items.map(described).join('\n');
  return format.kind === 'name' ? printItems(LISTING, items, format) : printDocument(items, format);
}

const LISTING: Listing<AccountKeyExplanation> = {
  kind: 'ServiceAccountKey',
  columns: [],
  name: ({ file }) => `key/${file}`,
};

function described({
  file,
  state,
  problem,
  keys,
  purpose,
  readBy,
  renewedBy,
  ifReplaced,
}: AccountKeyExplanation): string {
  return paragraph(`${file}: ${state}, ${problem ?? 'a key without an end'}`, [
    ['purpose', purpose],
    ...keys.map(key => ['sha256', key] as const),
    ...readBy.map(reader => ['read by', reader] as const),
    ['renewed by', renewedBy],
    ['if replaced', ifReplaced],
  ]);
}
