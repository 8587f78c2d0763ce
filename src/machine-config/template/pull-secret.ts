import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import type { IgnitionConfig } from '../../machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { CONFIG_NAMESPACE, DOCKER_CONFIG_JSON_KEY } from '../../machine-config-api/names.ts';
import { SourceError } from '../source/error.ts';
import { globalPullSecretText, PULL_SECRET } from '../source/pull-secret.ts';
import { PULL_SECRET_PATH } from './files/container-runtime.ts';

/** The pull secret as machines get it: of the right type, JSON, without blanks, in its own order (spec 50, 3.7). */
export function renderedPullSecret(secret: Secret | undefined): string {
  return compactJson(globalPullSecretText(secret));
}

/** The pull secret that a generated config holds; undefined where it holds none. */
export function pullSecretIn(config: MachineConfig | undefined): string | undefined {
  const files = (config?.spec?.config as IgnitionConfig | undefined)?.storage?.files ?? [];
  const source = files.find(({ path }) => path === PULL_SECRET_PATH)?.contents?.source;
  return source === undefined ? undefined : decodeDataUrl(source)?.toString('utf8').trimEnd();
}

/** JSON without blanks between its parts; members keep their order. Throws `SourceError` for a text that is none. */
export function compactJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    // The parser quotes its input, which is secret.
    const object = `secret ${CONFIG_NAMESPACE}/${PULL_SECRET}`;
    throw new SourceError(object, DOCKER_CONFIG_JSON_KEY, `${object}: ${DOCKER_CONFIG_JSON_KEY}: is not JSON`);
  }
  return text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, (_match, literal: string | undefined) => literal ?? '');
}
