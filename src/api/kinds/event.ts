import type { Event as CoreEvent } from 'kubernetes-types/core/v1.d.ts';
import type { Event } from 'kubernetes-types/events/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Conversion } from './kind.ts';

/** Events of `events.k8s.io/v1` are stored as core events; both APIs show the same objects under their own field names. */
export const eventConversion: Conversion = {
  toStored: object => rename(object, 'v1', NEW_TO_CORE),
  fromStored: object => rename(object, 'events.k8s.io/v1', CORE_TO_NEW),
};

const CORE_TO_NEW: Readonly<Partial<Record<keyof CoreEvent, keyof Event>>> = {
  involvedObject: 'regarding',
  message: 'note',
  reportingComponent: 'reportingController',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
};

const NEW_TO_CORE = Object.fromEntries(Object.entries(CORE_TO_NEW).map(([core, renamed]) => [renamed, core]));

function rename(object: KubeObject, apiVersion: string, names: Readonly<Record<string, string>>): KubeObject {
  const fields = Object.entries(object).map(([field, value]) => [names[field] ?? field, value]);
  return { ...(Object.fromEntries(fields) as KubeObject), apiVersion };
}
