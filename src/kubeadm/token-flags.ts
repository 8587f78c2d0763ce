import { posix } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { days, parseGoDuration, seconds } from '../kube/duration.ts';
import { componentOf, flagsOf } from './static-pods.ts';

/** A token that a kubelet brings to its pod ends after this, unless the pod asks for something else. */
const BOUND_MS = seconds(3607);
/** Where tokens are extended, those of pods that do not read theirs again are good for so long. */
const EXTENDED_MS = days(365);
/** Hosts of the issuer that kubeadm writes, and of the one that stands for none. */
const OWN_ISSUER = /^(?:https:\/\/kubernetes\.default\.svc(?:\.[a-z0-9.-]+)?|kubernetes\/serviceaccount)\/?$/;
const MOST_SHOWN = 120;

/**
 * Why the keys of service accounts cannot be replaced where a static pod runs like this; undefined: it reads them as kubeadm has it (spec 80, 7).
 * It is asked of mirror pods and of manifests alike.
 */
export function tokenFlagProblem(
  component: string | undefined,
  pod: Pod,
  certificatesDirectory: string,
): string | undefined {
  const [key, pub] = ['sa.key', 'sa.pub'].map(file => posix.join(certificatesDirectory, file)) as [string, string];
  const problems = {
    'kube-apiserver': () => apiServerProblem(pod, key, pub),
    'kube-controller-manager': () => only(pod, 'service-account-private-key-file', key),
  };
  const problem = problems[component as keyof typeof problems]?.();
  return problem && `${component} ${problem}`;
}

function apiServerProblem(pod: Pod, key: string, pub: string): string | undefined {
  const elsewhere = ['service-account-signing-endpoint', 'service-account-jwks-uri'].find(
    flag => valuesOf(pod, flag).length > 0,
  );
  if (elsewhere !== undefined) return `has --${elsewhere}: its tokens are signed or published by somebody else`;
  const issuer = valuesOf(pod, 'service-account-issuer').find(value => !OWN_ISSUER.test(value));
  if (issuer !== undefined)
    return `has --service-account-issuer=${shown(issuer)}: whoever verifies tokens outside the cluster would have to be told of other keys first`;
  return only(pod, 'service-account-key-file', pub) ?? only(pod, 'service-account-signing-key-file', key);
}

function only(pod: Pod, flag: string, path: string): string | undefined {
  const values = valuesOf(pod, flag);
  if (values.length === 1 && values[0] === path) return undefined;
  const found = values.length === 0 ? 'none' : values.map(shown).join(' and ');
  return `must have --${flag}=${path} and no other, found ${found}`;
}

/** Every value of a flag that may be given several times. */
function valuesOf({ spec }: Pod, flag: string): string[] {
  const [container] = spec?.containers ?? [];
  const words = [...(container?.command ?? []), ...(container?.args ?? [])];
  return words.flatMap((word, i) => {
    if (word.startsWith(`--${flag}=`)) return [word.slice(flag.length + 3)];
    return word === `--${flag}` ? [words[i + 1] ?? ''] : [];
  });
}

function shown(value: string): string {
  return value.slice(0, MOST_SHOWN);
}

/** How long a token may be good that was made just now. */
export interface TokenLife {
  readonly ms: number;
  /** Why so long, for people. */
  readonly because: string;
}

/**
 * The longest life of a token that these kube-apiservers give and pods ask for. What somebody asks for by himself (`kubectl create token
 * --duration`) is seen by nobody, unless `--service-account-max-token-expiration` ends it.
 */
export function tokenLife(apiServers: readonly Pod[], pods: readonly Pod[]): TokenLife {
  const flags = apiServers.filter(pod => componentOf(pod) === 'kube-apiserver').map(flagsOf);
  const isExtended =
    flags.length === 0 || flags.some(of => of.get('service-account-extend-token-expiration') !== 'false');
  const limits = flags.map(of => limitOf(of.get('service-account-max-token-expiration')));
  const limitMs = Math.max(...limits, limits.length === 0 ? Number.POSITIVE_INFINITY : 0);
  const asked = Math.max(BOUND_MS, ...pods.flatMap(askedBy));
  // The extension is heeded whatever the limit is.
  const candidates: TokenLife[] = [
    {
      ms: Math.min(asked, limitMs),
      because: asked > BOUND_MS ? 'a pod asks for tokens that are good for so long' : 'tokens of pods',
    },
    ...(Number.isFinite(limitMs) ? [{ ms: limitMs, because: '--service-account-max-token-expiration' }] : []),
    ...(isExtended ? [{ ms: EXTENDED_MS, because: '--service-account-extend-token-expiration, which is on' }] : []),
  ];
  return candidates.reduce((longest, one) => (one.ms > longest.ms ? one : longest));
}

function limitOf(text: string | undefined): number {
  const ms = text === undefined ? undefined : parseGoDuration(text);
  return ms === undefined || ms <= 0 ? Number.POSITIVE_INFINITY : ms;
}

function askedBy({ spec }: Pod): number[] {
  return (spec?.volumes ?? []).flatMap(({ projected }) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }) => {
      const asked = serviceAccountToken?.expirationSeconds;
      return asked === undefined || asked <= 0 ? [] : [seconds(asked)];
    }),
  );
}
