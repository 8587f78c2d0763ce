import type { ComponentChildren } from 'preact';
import type { CertificateState } from '../../src/inventory/model.ts';
import { Icon, type IconName } from './icon.tsx';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'plain';

/** A state in a word, with a sign and a colour. */
export function Label({
  tone,
  icon,
  children,
}: {
  tone: Tone;
  icon?: IconName | undefined;
  children: ComponentChildren;
}) {
  return (
    <span class={`label ${tone}`}>
      {icon !== undefined && <Icon name={icon} />} {children}
    </span>
  );
}

const STATES: Readonly<Record<CertificateState, { tone: Tone; icon: IconName; text: string }>> = {
  Good: { tone: 'good', icon: 'ok', text: 'Good' },
  Due: { tone: 'info', icon: 'moving', text: 'Due' },
  Expiring: { tone: 'warn', icon: 'clock', text: 'Expiring' },
  NeedsAttention: { tone: 'bad', icon: 'warning', text: 'Needs attention' },
  Unusable: { tone: 'bad', icon: 'error', text: 'Unusable' },
  Expired: { tone: 'bad', icon: 'error', text: 'Expired' },
  Missing: { tone: 'bad', icon: 'error', text: 'Missing' },
};

export const CERTIFICATE_STATES = Object.keys(STATES) as CertificateState[];

export function StateLabel({ state }: { state: CertificateState }) {
  const { tone, icon, text } = STATES[state];
  return (
    <Label tone={tone} icon={icon}>
      {text}
    </Label>
  );
}

const ROLES: Readonly<Record<string, { icon: IconName; text: string }>> = {
  signer: { icon: 'key', text: 'Signer' },
  target: { icon: 'leaf', text: 'Certificate' },
  'ca-bundle': { icon: 'bundle', text: 'CA bundle' },
  unmanaged: { icon: 'none', text: 'Unmanaged' },
};

export function RoleLabel({ role }: { role: string }) {
  const { icon, text } = ROLES[role] ?? { icon: 'none' as const, text: role };
  return (
    <Label tone="plain" icon={icon}>
      {text}
    </Label>
  );
}

export function StandInLabel() {
  return (
    <Label tone="warn" icon="info">
      Stand-in
    </Label>
  );
}
