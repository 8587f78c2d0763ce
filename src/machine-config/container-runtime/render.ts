import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import type { ContainerRuntimeConfig, ContainerRuntimeSettings } from '../../machine-config-api/machine-config.ts';
import { generatedFile } from '../sub-config/generated.ts';
import { STORAGE_PATH, storageConf } from '../template/files/container-runtime.ts';
import { quantityValue } from './quantity.ts';

/** A ContainerRuntimeConfig that is refused: the field and why. */
export class ContainerRuntimeConfigError extends Error {
  override readonly name = 'ContainerRuntimeConfigError';
}

const LEAST_PIDS = 20;
/** What conmon reads at once; a smaller log would never hold a line. */
const LEAST_LOG_BYTES = 8192;
const LOG_LEVELS: readonly string[] = ['fatal', 'panic', 'error', 'warn', 'info', 'debug', 'trace'];
const RUNTIMES = new Set(['', 'crun', 'runc']);
const DROPINS = '/etc/crio/crio.conf.d';

/** Throws `ContainerRuntimeConfigError` for one that must not reach a node. */
export function checkContainerRuntimeConfig({ spec }: ContainerRuntimeConfig): void {
  const {
    pidsLimit = 0,
    logLevel = '',
    logSizeMax,
    overlaySize,
    defaultRuntime = '',
  } = spec?.containerRuntimeConfig ?? {};
  const invalid = (field: string, message: string) =>
    new ContainerRuntimeConfigError(`spec.containerRuntimeConfig.${field}: ${message}`);
  if (pidsLimit !== 0 && pidsLimit < LEAST_PIDS)
    throw invalid('pidsLimit', `expected at least ${LEAST_PIDS}, found ${pidsLimit}`);
  const logBytes = valueOf('logSizeMax', logSizeMax);
  if (logBytes > 0 && logBytes <= LEAST_LOG_BYTES)
    throw invalid('logSizeMax', `expected more than ${LEAST_LOG_BYTES} bytes, found ${logSizeMax}`);
  if (valueOf('overlaySize', overlaySize) < 0) throw invalid('overlaySize', `expected 0 or more, found ${overlaySize}`);
  if (logLevel !== '' && !LOG_LEVELS.includes(logLevel))
    throw invalid('logLevel', `expected one of ${LOG_LEVELS.join(', ')}, found ${JSON.stringify(logLevel)}`);
  if (!RUNTIMES.has(defaultRuntime))
    throw invalid('defaultRuntime', `expected crun or runc, found ${JSON.stringify(defaultRuntime)}`);
}

/** The files of a ContainerRuntimeConfig: one drop-in a setting, so that settings that are not made stay what they are. */
export function containerRuntimeFiles({ spec }: ContainerRuntimeConfig): IgnitionFile[] {
  const settings: ContainerRuntimeSettings = spec?.containerRuntimeConfig ?? {};
  const { overlaySize, logLevel = '', pidsLimit, logSizeMax, defaultRuntime = '' } = settings;
  const dropin = (setting: string, line: string) =>
    generatedFile(`${DROPINS}/01-ctrcfg-${setting}`, `[crio]\n  [crio.runtime]\n    ${line}\n`);
  const logBytes = valueOf('logSizeMax', logSizeMax);
  return [
    ...(valueOf('overlaySize', overlaySize) > 0 ? [generatedFile(STORAGE_PATH, storageConf(String(overlaySize)))] : []),
    ...(logLevel === '' ? [] : [dropin('logLevel', `log_level = ${JSON.stringify(logLevel)}`)]),
    ...(pidsLimit ? [dropin('pidsLimit', `pids_limit = ${pidsLimit}`)] : []),
    ...(logBytes === 0 ? [] : [dropin('logSizeMax', `log_size_max = ${logBytes}`)]),
    ...(defaultRuntime === '' ? [] : [dropin('defaultRuntime', `default_runtime = ${JSON.stringify(defaultRuntime)}`)]),
  ];
}

function valueOf(field: string, quantity: number | string | undefined): number {
  if (quantity === undefined || quantity === '') return 0;
  const value = quantityValue(quantity);
  if (value === undefined)
    throw new ContainerRuntimeConfigError(
      `spec.containerRuntimeConfig.${field}: ${JSON.stringify(quantity)} is not a quantity`,
    );
  return value;
}
