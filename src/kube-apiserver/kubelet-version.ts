import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../controller/condition.ts';
import { condition } from '../staticpod/condition.ts';

const TYPE = 'KubeletMinorVersionUpgradeable';
/** Kubelets may be so many minor versions behind kube-apiserver. */
const MOST_BEHIND = 3;

/** Whether all kubelets would still be supported after kube-apiserver has gone up one minor version (spec 20, 6.3). */
export function kubeletVersionCondition(serverVersion: string, nodes: readonly Node[]): Condition {
  const server = minorOf(serverVersion);
  if (server === undefined) {
    return condition(
      TYPE,
      'Unknown',
      'KubeAPIServerVersionUnknown',
      `cannot read the version ${JSON.stringify(serverVersion)}`,
    );
  }
  const behind = (node: Node) => {
    const minor = minorOf(node.status?.nodeInfo?.kubeletVersion ?? '');
    return minor === undefined ? undefined : server - minor;
  };
  const named = (test: (skew: number | undefined) => boolean) =>
    nodes
      .filter(node => test(behind(node)))
      .map(node => node.metadata?.name ?? '')
      .sort();
  const bad = (reason: string, why: string, names: readonly string[]) =>
    condition(TYPE, 'False', reason, `Kubelets ${why}: ${names.join(', ')}`);

  const unknown = named(skew => skew === undefined);
  if (unknown.length > 0) return bad('KubeletVersionUnknown', 'of unknown version', unknown);
  const ahead = named(skew => skew !== undefined && skew < 0);
  if (ahead.length > 0) return bad('KubeletMinorVersionAhead', 'newer than kube-apiserver', ahead);
  const unsupported = named(skew => (skew ?? 0) > MOST_BEHIND);
  if (unsupported.length > 0) return bad('KubeletMinorVersionUnsupported', 'too old for kube-apiserver', unsupported);
  const last = named(skew => skew === MOST_BEHIND);
  if (last.length > 0)
    return bad('KubeletMinorVersionUnsupportedNextUpgrade', 'too old for the next kube-apiserver', last);
  const isSame = nodes.every(node => behind(node) === 0);
  return condition(TYPE, 'True', isSame ? 'KubeletMinorVersionsSynced' : 'KubeletMinorVersionsSupportedNextUpgrade');
}

function minorOf(version: string): number | undefined {
  const [, minor] = /^v?1\.(\d+)(?:\.|$|\+|-)/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
}
