import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { days, formatGoDuration, minutes, parseGoDuration, seconds } from '../kube/duration.ts';
import { isNotFound } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { quote } from './decision.ts';
import { CertRotationError } from './error.ts';

export const SCALE_CONFIG_MAP = 'unsupported-cert-rotation-config';
const SCALE_KEY = 'base';
const READ_EVERY_MS = seconds(1);
const READ_FOR_MS = minutes(1);

/** How long one "day" of rotation lasts: the configured base, or 24 h (spec 10, 11). */
export function rotationDay(scaleMs: number): number {
  return scaleMs === 0 ? days(1) : scaleMs;
}

/** The scale a ConfigMap asks for in milliseconds; 0 means none. */
export function parseScale(configMap: ConfigMap | undefined): number {
  const text = configMap?.data?.[SCALE_KEY];
  if (text === undefined) return 0;
  const scale = parseGoDuration(text);
  if (scale === undefined) {
    throw new CertRotationError('INVALID_SCALE', `${SCALE_KEY} must be a duration such as 2h, found ${quote(text)}`);
  }
  if (scale < 0) {
    throw new CertRotationError('INVALID_SCALE', `scale must not be negative, found ${formatGoDuration(scale)}`);
  }
  if (scale > days(1)) {
    const message = `scale longer than 24h is not allowed: ${formatGoDuration(scale)}`;
    throw new CertRotationError('INVALID_SCALE', message);
  }
  return scale;
}

/** Reads the scale from the cluster, trying again for a minute when the API does not answer (trap 14.14). */
export async function readRotationScale(
  kube: Kube,
  namespace: string,
  clock: Clock,
  warn: (message: string) => void,
): Promise<number> {
  const giveUpAt = clock.now().getTime() + READ_FOR_MS;
  for (;;) {
    try {
      const scale = parseScale(await kube.get(CONFIG_MAPS, { namespace, name: SCALE_CONFIG_MAP }));
      if (scale > 0) {
        warn(`!!! UNSUPPORTED VALUE SET !!! one day of certificate rotation lasts ${formatGoDuration(scale)}`);
      }
      return scale;
    } catch (error) {
      if (isNotFound(error)) return 0;
      if (error instanceof CertRotationError || clock.now().getTime() >= giveUpAt) throw error;
      await sleep(clock, READ_EVERY_MS);
    }
  }
}
