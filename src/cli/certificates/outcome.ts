import type { ObjectRef } from '../../trust/object.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, printDocument } from '../output/print.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';

/** What a verb did with one object. */
export interface Outcome {
  readonly object: ObjectRef;
  readonly outcome: 'done' | 'unchanged' | 'skipped' | 'held' | 'failed';
  /** What was done in words, or why nothing was. */
  readonly text: string;
  readonly details?: readonly string[] | undefined;
}

export function verbFormat(text: string): OutputFormat {
  const format = outputFormatFrom(text);
  if (format.kind === 'wide')
    throw new UsageError('--output must be table, json, yaml, name or jsonpath=<template>, found "wide"');
  return format;
}

/** Prints objects as `--local` leaves them: a list that can be applied. */
export function printObjects(items: readonly object[], format: OutputFormat): void {
  const document = { apiVersion: API_VERSION, kind: 'List', items };
  process.stdout.write(printDocument(document, format.kind === 'table' ? { kind: 'yaml' } : format));
}

/** Prints `kind/name verbed` for each object that was changed; errors and what was held back go to standard error. */
export function printOutcomes(
  outcomes: readonly Outcome[],
  format: OutputFormat,
  options: { readonly dryRun: boolean; readonly verbose: boolean; readonly follows?: readonly object[] | undefined },
): void {
  const { dryRun, verbose, follows } = options;
  if (format.kind !== 'table' && format.kind !== 'name') {
    const document = {
      apiVersion: API_VERSION,
      kind: 'Result',
      dryRun,
      outcomes,
      ...(follows === undefined ? {} : { follows }),
    };
    process.stdout.write(printDocument(document, format));
  }
  for (const { object, outcome, text, details = [] } of outcomes) {
    const name = `${object.kind.toLowerCase()}/${object.name}`;
    const where = `${name} in ${object.namespace}`;
    if (outcome === 'done' && format.kind === 'name') process.stdout.write(`${visible(name)}\n`);
    if (outcome === 'done' && format.kind === 'table') {
      process.stdout.write(`${visible(`${name} ${text}${dryRun ? ' (dry run: nothing was written)' : ''}`)}\n`);
      for (const detail of details) process.stdout.write(`  ${visible(detail)}\n`);
    }
    if (outcome === 'failed') process.stderr.write(`error: ${visible(`${where}: ${text}`)}\n`);
    if (outcome === 'held') process.stderr.write(`held back: ${visible(`${where}: ${text}`)}\n`);
    if (outcome === 'failed' || outcome === 'held') {
      for (const detail of details) process.stderr.write(`  ${visible(detail)}\n`);
    }
    if (verbose && (outcome === 'skipped' || outcome === 'unchanged')) {
      process.stderr.write(`passed over: ${visible(`${where}: ${text}`)}\n`);
    }
  }
  if (outcomes.some(({ outcome }) => outcome === 'failed' || outcome === 'held')) process.exitCode = 1;
}
