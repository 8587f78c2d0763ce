import type { KubeObject } from '../../kube/resource.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, printDocument } from '../output/print.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';

/** What a verb did with one object. */
export interface Outcome {
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly outcome: 'done' | 'unchanged' | 'skipped' | 'held' | 'failed';
  /** What was done in words, or why nothing was. */
  readonly text: string;
  readonly details?: readonly string[] | undefined;
  /** Said without `-v` too, although nothing was done. */
  readonly isNoted?: boolean | undefined;
}

export function verbFormat(text: string): OutputFormat {
  const format = outputFormatFrom(text);
  if (format.kind === 'wide')
    throw new UsageError('--output must be table, json, yaml, name or jsonpath=<template>, found "wide"');
  return format;
}

/** What `--local` read and what it does not take. */
export interface LocalReport {
  readonly outcomes: readonly Outcome[];
  readonly missing: readonly string[];
  readonly warnings: readonly string[];
}

/** Prints objects as `--local` leaves them, a list that can be applied, and reports the others. */
export function printLocal(
  items: readonly KubeObject[],
  { outcomes, missing, warnings }: LocalReport,
  format: OutputFormat,
  verbose: boolean,
): void {
  printObjects(items, format);
  for (const warning of warnings) process.stderr.write(`warning: ${visible(warning)}\n`);
  reportProblems(outcomes, verbose);
  reportMissing(missing);
}

function printObjects(items: readonly KubeObject[], format: OutputFormat): void {
  if (format.kind === 'name') {
    for (const { kind = '', metadata } of items) {
      process.stdout.write(`${visible(`${kind.toLowerCase()}/${metadata?.name}`)}\n`);
    }
    return;
  }
  const document = { apiVersion: 'v1', kind: 'List', items };
  process.stdout.write(printDocument(document, format.kind === 'table' ? { kind: 'yaml' } : format));
}

/** Prints `kind/name verbed` for each object that was changed, and reports the others. */
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
      outcomes: outcomes.map(({ isNoted: _noted, ...outcome }) => outcome),
      ...(follows === undefined ? {} : { follows }),
    };
    process.stdout.write(printDocument(document, format));
  }
  for (const { object, outcome, text, details = [], isNoted = false } of outcomes) {
    const name = `${object.kind.toLowerCase()}/${object.name}`;
    if (outcome === 'done' && format.kind === 'name') process.stdout.write(`${visible(name)}\n`);
    if (format.kind !== 'table') continue;
    if (outcome === 'done') {
      process.stdout.write(`${visible(`${name} ${text}${dryRun ? ' (dry run: nothing was written)' : ''}`)}\n`);
      for (const detail of details) process.stdout.write(`  ${visible(detail)}\n`);
    }
    if (outcome === 'unchanged' && isNoted) process.stdout.write(`${visible(`${name} ${text}`)}\n`);
  }
  reportProblems(outcomes, verbose);
}

/** Says on standard error what failed, what was held back and, with `-v`, what was passed over; the first two are exit code 1. */
function reportProblems(outcomes: readonly Outcome[], verbose: boolean): void {
  for (const { object, outcome, text, details = [], isNoted = false } of outcomes) {
    const where = `${object.kind.toLowerCase()}/${object.name} in ${object.namespace || '<none>'}`;
    const isSaid = outcome === 'skipped' ? isNoted || verbose : outcome === 'unchanged' && verbose && !isNoted;
    if (isSaid) process.stderr.write(`passed over: ${visible(`${where}: ${text}`)}\n`);
    if (outcome !== 'failed' && outcome !== 'held') continue;
    process.stderr.write(`${outcome === 'failed' ? 'error' : 'held back'}: ${visible(`${where}: ${text}`)}\n`);
    for (const detail of details) process.stderr.write(`  ${visible(detail)}\n`);
    process.exitCode = 1;
  }
}

/** Names that were asked for and are not there. */
export function reportMissing(missing: readonly string[]): void {
  for (const text of missing) process.stderr.write(`error: ${visible(text)}\n`);
  if (missing.length > 0) process.exitCode = 1;
}
