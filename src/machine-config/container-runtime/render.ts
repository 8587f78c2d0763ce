import { goQuote } from '../../kube/go-quote.ts';
import { parseQuantity, type Quantity, QuantityError, quantityText, quantityValue } from '../../kube/quantity.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import type { ContainerRuntimeConfig, ContainerRuntimeSettings } from '../../machine-config-api/machine-config.ts';
import { generatedFile } from '../sub-config/generated.ts';
import { STORAGE_PATH, storageConf } from '../template/files/container-runtime.ts';

/** A ContainerRuntimeConfig that is refused: the field and why. */
export class ContainerRuntimeConfigError extends Error {
  override readonly name = 'ContainerRuntimeConfigError';
}

const LEAST_PIDS = 20;
/** What conmon reads at once; a smaller log would never hold a line. */
const LEAST_LOG_BYTES = 8192n;
const LOG_LEVELS: readonly string[] = ['error', 'fatal', 'panic', 'warn', 'info', 'debug', 'trace'];
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
  const log = amountOf('logSizeMax', logSizeMax);
  const overlay = amountOf('overlaySize', overlaySize);
  if (!Number.isSafeInteger(pidsLimit) || (pidsLimit !== 0 && pidsLimit < LEAST_PIDS))
    throw invalid('pidsLimit', `invalid PidsLimit ${pidsLimit}`);
  if (log !== undefined && log.value > 0n && log.value <= LEAST_LOG_BYTES)
    throw invalid('logSizeMax', `invalid LogSizeMax ${goQuote(quantityText(log.quantity))}, cannot be less than 8kB`);
  if (overlay !== undefined && overlay.value < 0n)
    throw invalid(
      'overlaySize',
      `invalid overlaySize ${goQuote(quantityText(overlay.quantity))}, cannot be less than 0`,
    );
  if (logLevel !== '' && !LOG_LEVELS.includes(logLevel))
    throw invalid('logLevel', `invalid LogLevel ${goQuote(logLevel)}, must be one of ${LOG_LEVELS.join(', ')}`);
  if (!RUNTIMES.has(defaultRuntime))
    throw invalid('defaultRuntime', `invalid DefaultRuntime ${goQuote(defaultRuntime)}, must be one of crun, runc`);
}

/**
 * The files of a ContainerRuntimeConfig: one drop-in a setting, so that settings that are not made stay what they are. No limit of
 * processes is a setting too: it takes the place of one that an earlier ContainerRuntimeConfig made.
 */
export function containerRuntimeFiles({ spec }: ContainerRuntimeConfig): IgnitionFile[] {
  const settings: ContainerRuntimeSettings = spec?.containerRuntimeConfig ?? {};
  const { overlaySize, logLevel = '', pidsLimit, logSizeMax, defaultRuntime = '' } = settings;
  const dropin = (setting: string, line: string) =>
    generatedFile(`${DROPINS}/01-ctrcfg-${setting}`, `[crio]\n  [crio.runtime]\n    ${line}\n`);
  const log = amountOf('logSizeMax', logSizeMax);
  const overlay = amountOf('overlaySize', overlaySize);
  return [
    ...(overlay === undefined || overlay.value === 0n
      ? []
      : [generatedFile(STORAGE_PATH, storageConf(storageSize(overlay)))]),
    ...(logLevel === '' ? [] : [dropin('logLevel', `log_level = ${JSON.stringify(logLevel)}`)]),
    ...(pidsLimit === undefined ? [] : [dropin('pidsLimit', `pids_limit = ${pidsLimit}`)]),
    ...(log === undefined || log.value === 0n ? [] : [dropin('logSizeMax', `log_size_max = ${log.value}`)]),
    ...(defaultRuntime === '' ? [] : [dropin('defaultRuntime', `default_runtime = ${JSON.stringify(defaultRuntime)}`)]),
  ];
}

interface Amount {
  readonly quantity: Quantity;
  readonly value: bigint;
}

/** What containers/storage reads as a size; one that it cannot read keeps every container from starting. */
const READABLE_SIZE = /^\d+(?:[kmMGTP]|e\d+)?$/;

function storageSize({ quantity, value }: Amount): string {
  const text = quantityText(quantity);
  return READABLE_SIZE.test(text) ? text : String(value);
}

function amountOf(field: string, text: number | string | null | undefined): Amount | undefined {
  if (text === undefined || text === null) return undefined;
  try {
    const quantity = parseQuantity(String(text).trim());
    const value = quantityValue(quantity);
    if (value === undefined) throw new QuantityError('is more than fits 64 bits');
    return { quantity, value };
  } catch (error) {
    throw error instanceof QuantityError ? invalid(field, `${JSON.stringify(text)}: ${error.message}`) : error;
  }
}

function invalid(field: string, message: string): ContainerRuntimeConfigError {
  return new ContainerRuntimeConfigError(`spec.containerRuntimeConfig.${field}: ${message}`);
}
