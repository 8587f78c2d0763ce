import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf } from '../../certrotation/secret.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { PODS, SECRETS } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { STATIC_POD_NAMESPACE } from '../../kubeadm/names.ts';
import { controlPlane } from '../../kubeadm/operator/account-evidence.ts';
import { accountGoal, accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import { accountProblems } from '../../kubeadm/operator/account-problems.ts';
import { TOKENS_SINCE } from '../../kubeadm/operator/names.ts';
import { beganAfter } from '../../kubeadm/operator/older-pods.ts';
import { publicKeyDigests } from '../../kubeadm/service-account-keys.ts';
import { type TokenLife, tokenLife } from '../../kubeadm/token-flags.ts';
import type { Scene } from './scene.ts';
import { type SecretToken, secretTokens, TOKEN_SECRET } from './secret-tokens.ts';

/** What the command sees of tokens, with the rights of whoever runs it. */
export interface AccountScene {
  /** Why no other keys can be made; empty: they can. */
  readonly problems: readonly string[];
  readonly life: TokenLife;
  /** Secrets with tokens that do not end and are of a key that would go, or of the one in use where no other one has signed yet. */
  readonly tokens: readonly SecretToken[];
  /** Pods that bring their containers a token and began before everybody signed with the key in use. */
  readonly olderPods: readonly Pod[];
}

export async function readAccountScene(kube: Kube, scene: Scene): Promise<AccountScene> {
  const [pods, secrets] = await Promise.all([
    listAll(kube, PODS),
    listAll(kube, SECRETS, { fieldSelector: `type=${TOKEN_SECRET}` }),
  ]);
  return accountSceneOf(scene, pods.items, secretsOf(scene, secrets.items));
}

/** The same of what was read. */
export function accountSceneOf(scene: Scene, pods: readonly Pod[], tokens: readonly SecretToken[]): AccountScene {
  const { nodes, settings, pki } = scene;
  const staticPods = pods.filter(
    ({ metadata }) => metadata?.namespace === STATIC_POD_NAMESPACE && metadata.labels?.tier === 'control-plane',
  );
  const keys = accountKeysIn(pki.secrets);
  const since = keys === undefined || keys === 'unusable' ? undefined : annotationsOf(keys.secret)[TOKENS_SINCE];
  const sinceAt = parseRfc3339(since ?? '');
  return {
    problems: accountProblems({
      nodes,
      staticPods,
      certificatesDirectory: settings.certificatesDirectory,
      isKnown: keys !== undefined,
    }),
    life: tokenLife(staticPods, pods),
    tokens,
    olderPods: pods.filter(pod => hasToken(pod) && (sinceAt === undefined || !beganAfter(pod, floorToMs(sinceAt)))),
  };
}

/** Those that would be signed anew before the keys before go. */
export function secretsOf({ pki, nodes }: Scene, secrets: Parameters<typeof secretTokens>[0]): readonly SecretToken[] {
  const keys = accountKeysIn(pki.secrets);
  const signs = controlPlane(nodes).flatMap(({ report }) => report?.serviceAccount?.signs ?? []);
  if (keys === undefined || keys === 'unusable' || (keys.previous === undefined && keys.next === undefined)) {
    // Nothing has been replaced yet: all of them are of the key that would go.
    return secretTokens(secrets, { current: '', older: signs }).filter(token => token.is === 'older');
  }
  const current = keys.current.digest;
  const older = publicKeyDigests(accountGoal(keys).publicKeys).filter(digest => digest !== current);
  return secretTokens(secrets, { current, older }).filter(token => token.is === 'older');
}

function hasToken({ spec, status }: Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  const sources = (spec?.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some(({ serviceAccountToken }) => serviceAccountToken !== undefined);
}
