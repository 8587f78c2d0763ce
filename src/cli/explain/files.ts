import { basename } from 'node:path';
import type { CertificateItem } from '../../inventory/model.ts';
import { nameOf } from '../../inventory/renewed.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS } from '../../kubeadm/chains.ts';
import type { Use } from '../../trust/graph.ts';
import { lookAtFolder } from '../look/look-at-folder.ts';
import type { OutputFormat } from '../output/format.ts';
import { type Listing, printDocument, printItems } from '../output/print.ts';
import { secondsText, shortDuration } from '../output/time.ts';
import { visible } from '../table.ts';

/** What one certificate in a file is, who reads it, who renews it and what ends with it (spec 80, 1 and 2). */
export interface FileExplanation extends CertificateItem {
  readonly uses: readonly Use[];
}

export function explainFiles(paths: readonly string[], now: Date): FileExplanation[] {
  return paths.flatMap(path => lookAtFolder(path, now).items.map(explained));
}

function explained(item: CertificateItem): FileExplanation {
  const known = [...KUBEADM_CHAINS, ...KUBEADM_SIGNERS].find(({ name }) => name === item.seen?.knownAs);
  return { ...item, uses: known?.uses ?? [] };
}

export function renderFiles(items: readonly FileExplanation[], format: OutputFormat, now: Date): string {
  if (format.kind === 'table' || format.kind === 'wide') return items.map(item => described(item, now)).join('\n');
  return format.kind === 'name' ? printItems(LISTING, items, format) : printDocument(items, format);
}

const LISTING: Listing<FileExplanation> = {
  kind: 'Certificate',
  columns: [],
  name: item => `certificate/${nameOf(item)}`,
};

const TAKES = {
  watch: 'a change is taken by itself',
  'per-handshake': 'a change is taken at the next connection',
  restart: 'a change is taken at its next start',
  'on-use': 'at every use',
} as const;

/** Sentences for a person; the answer stands in the first line. */
function described(item: FileExplanation, now: Date): string {
  const { certificate, seen, purpose, uses, state, problem, notes } = item;
  const lines: [string, string][] = [];
  if (seen?.knownAs !== undefined) lines.push(['known as', `${seen.knownAs}, in kubeadm's layout`]);
  if (purpose !== undefined) lines.push(['purpose', purpose]);
  if (certificate !== undefined) {
    const { subject, groups, issuer, isSelfSigned, hostnames, notBefore, notAfter, key } = certificate;
    lines.push(['subject', [`CN=${subject}`, ...groups.map(group => `O=${group}`)].join(', ')]);
    lines.push(['signed by', isSelfSigned ? 'itself' : issuer]);
    if (hostnames.length > 0) lines.push(['good for', hostnames.join(', ')]);
    lines.push(['valid', `${secondsText(notBefore)} to ${secondsText(notAfter)}, ${key}`]);
  }
  for (const { process, setting, takes } of uses) {
    lines.push(['read by', `${`${process} ${setting}`.trim()} (${TAKES[takes]})`]);
  }
  lines.push(['renewed by', renewalText(item)]);
  if (seen?.atItsEnd !== undefined) lines.push(['at its end', seen.atItsEnd]);
  for (const note of notes) lines.push(['note', note]);
  const left = certificate === undefined ? '' : leftText(Date.parse(certificate.notAfter) - now.getTime());
  const head = `${basename(seen?.places[0] ?? nameOf(item))}: ${state}${left}${state === 'Good' || problem === undefined ? '' : `: ${problem}`}`;
  return paragraph(head, lines);
}

/** The answer, and below it what it goes by. */
export function paragraph(head: string, lines: readonly (readonly [word: string, text: string])[]): string {
  const width = Math.max(...lines.map(([word]) => word.length));
  return [head, ...lines.map(([word, text]) => `  ${word.padEnd(width)}  ${text}`)]
    .map(line => `${visible(line)}\n`)
    .join('');
}

function leftText(leftMs: number): string {
  return leftMs < 0 ? `, ended ${shortDuration(-leftMs)} ago` : `, ends in ${shortDuration(leftMs)}`;
}

function renewalText({ seen }: FileExplanation): string {
  switch (seen?.renewal) {
    case 'kubelet':
      return 'the kubelet, by itself';
    case 'by-hand':
      return `nobody by itself; ${seen.renewWith} does, and kubeadm upgrade`;
    case 'owner':
      return 'whoever brought it: the key of its CA is not here';
    default:
      return 'nobody that is known';
  }
}
