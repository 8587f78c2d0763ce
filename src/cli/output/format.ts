import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';

/** What `-o` asks for. */
export type OutputFormat =
  | { readonly kind: 'table' | 'wide' | 'json' | 'yaml' | 'name' }
  | { readonly kind: 'jsonpath' | 'custom-columns'; readonly template: string };

export const MACHINE_FORMATS = 'json, yaml, name, jsonpath=<template> or custom-columns=<HEADER:path,...>';
const FORMATS = `table, wide, ${MACHINE_FORMATS}`;

export function withOutputFlag(command: Command): Command {
  return command.option('-o, --output <format>', FORMATS, 'table');
}

export function outputFormatFrom(text: string): OutputFormat {
  const [, kind, template] = /^(jsonpath|custom-columns)=(.*)$/s.exec(text) ?? [];
  if (kind === 'jsonpath' || kind === 'custom-columns') {
    const example = kind === 'jsonpath' ? '{.items[*].metadata.name}' : 'NAME:.metadata.name,STATE:.state';
    if (!template) throw new UsageError(`-o ${kind} needs a template, such as ${kind}=${example}`);
    return { kind, template };
  }
  switch (text) {
    case 'table':
    case 'wide':
    case 'json':
    case 'yaml':
    case 'name':
      return { kind: text };
    default:
      throw new UsageError(`--output must be ${FORMATS}, found "${text}"`);
  }
}

/** The format of a command that has sentences for people instead of a table; undefined: those. */
export function machineFormatFrom(text: string): OutputFormat | undefined {
  if (text === 'text') return undefined;
  if (!/^(?:json|yaml|name|(?:jsonpath|custom-columns)=.*)$/s.test(text)) {
    throw new UsageError(`--output must be text, ${MACHINE_FORMATS}, found "${text}"`);
  }
  return outputFormatFrom(text);
}
