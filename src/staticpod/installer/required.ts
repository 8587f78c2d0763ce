import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { listText } from '../../controller/aggregate-error.ts';
import { CONFIG_MAPS, type Resource, SECRETS } from '../../kube/resource.ts';
import type { ListedObject, StaticPodOperatorConfig } from '../config.ts';
import { compareText, type Objects } from '../objects.ts';
import { copyName } from '../revision/number.ts';

/** Objects that an installer would not find: one text for each list that lacks something (spec 30, 9.1.2). */
export class MissingResources extends Error {
  override readonly name = 'MissingResources';
  readonly groups: readonly string[];

  constructor(groups: readonly string[]) {
    super(`missing required resources: ${listText(groups)}`);
    this.groups = groups;
  }
}

/** Throws `MissingResources` unless everything a revision needs is there. */
export async function requireResources(
  objects: Objects,
  {
    operandNamespace: namespace,
    unrevisioned = { configMaps: [], secrets: [], directory: '' },
    revisioned,
  }: Pick<StaticPodOperatorConfig, 'operandNamespace' | 'unrevisioned' | 'revisioned'>,
  revision: number,
): Promise<void> {
  const asIs = ({ name }: ListedObject) => name;
  const asCopy = ({ name }: ListedObject) => copyName(name, revision);
  const missing = async (
    resource: Resource<ConfigMap | Secret>,
    list: readonly ListedObject[],
    nameOf: (listed: ListedObject) => string,
  ) => {
    const names = list.filter(({ optional }) => !optional).map(nameOf);
    const found = await Promise.all(names.map(name => objects.get(resource, { namespace, name })));
    const absent = names.filter((_name, index) => found[index] === undefined).sort(compareText);
    return absent.length === 0 ? [] : [`${resource.plural}: ${absent.join(',')}`];
  };
  const groups = [
    ...(await missing(CONFIG_MAPS, unrevisioned.configMaps, asIs)),
    ...(await missing(SECRETS, unrevisioned.secrets, asIs)),
    ...(await missing(CONFIG_MAPS, revisioned.configMaps, asCopy)),
    ...(await missing(SECRETS, revisioned.secrets, asCopy)),
  ];
  if (groups.length > 0) throw new MissingResources(groups);
}
