import { annotationsOf } from '../../certrotation/secret.ts';
import { TOOK } from '../../hand-over/names.ts';
import { days, hours, minutes } from '../../kube/duration.ts';
import { PKI_NAMESPACE } from '../../kubeadm/names.ts';
import { controlPlane } from '../../kubeadm/operator/account-evidence.ts';
import { accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import { SERVICE_ACCOUNT_KEYS } from '../../kubeadm/service-account-keys.ts';
import { listed, tokenText } from './account-request.ts';
import type { AccountScene } from './account-scene.ts';
import { wrap } from './lines.ts';
import { countText, durationText } from './plan.ts';
import type { Scene } from './scene.ts';

/** What another key of service accounts would mean, the answer first: what restarts where, who is refused when, and how to go back. */
export function accountPlanText(scene: Scene, { life, tokens }: AccountScene): string {
  const keys = accountKeysIn(scene.pki.secrets);
  const names = controlPlane(scene.nodes).map(({ name }) => name);
  const isFirst = keys === undefined;
  const steps = [
    ...(isFirst
      ? [
          `Copy        sa.key and sa.pub are copied into Secret ${PKI_NAMESPACE}/${SERVICE_ACCOUNT_KEYS.name}. Nothing restarts.`,
        ]
      : []),
    'Distribute  sa.pub gets the next public key beside the one in use. Restarts kube-apiserver on each control-plane node.',
    'Sign        once every kube-apiserver has begun with both: sa.key is replaced. Restarts kube-controller-manager, then kube-apiserver, on each control-plane node. Kubelets bring pods tokens of the next key within an hour.',
    `Retire      the public key before is accepted for ${lifeText(life.ms)} more (${life.because}), or until rotunda rotate sa --retire. Restarts kube-controller-manager and kube-apiserver on each control-plane node.`,
  ];
  const took = keys === undefined || keys === 'unusable' ? undefined : annotationsOf(keys.secret)[TOOK];
  const restarts = { controlPlane: names, workers: [], onControlPlane: ['kube-apiserver'], onWorkers: [] };
  const lines = [
    `Another key for tokens of service accounts, on ${countText(names.length, 'control-plane node')}. ` +
      'No token that is good is refused meanwhile: every node is changed and checked before the next one.',
    '',
    ...steps.map((step, i) => `${i + 1} ${step}`),
    '',
    `Nodes, in this order: ${names.join(', ')}.`,
    ...(tokens.length === 0
      ? ['Secrets with tokens that do not end: none.']
      : [
          `Secrets with tokens that do not end keep the key before accepted: ${listed(tokens.map(tokenText))}. With --retire they get other tokens, and whoever holds a copy is refused: pods that mount one for about two minutes, all others until they are given the other one.`,
        ]),
    'Nobody sees tokens that somebody asked for with a longer life (kubectl create token --duration). Whoever verifies tokens by himself with /openid/v1/jwks may keep for an hour what that said.',
    `Expected duration until it signs everywhere: about ${durationText(restarts, took)}.`,
    'Point of no return: Retire. Before Sign, --take-back leaves every file as it was; after it, --take-back hands over to the key before.',
  ];
  return `${lines.map(line => wrap(line)).join('\n')}\n`;
}

function lifeText(ms: number): string {
  if (ms >= days(2)) return countText(Math.ceil(ms / days(1)), 'day');
  return ms >= hours(2) ? countText(Math.ceil(ms / hours(1)), 'hour') : countText(Math.ceil(ms / minutes(1)), 'minute');
}
