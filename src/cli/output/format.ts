import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';

/** What `-o` asks for. */
export type OutputFormat =
  | { readonly kind: 'table' | 'wide' | 'json' | 'yaml' | 'name' }
  | { readonly kind: 'jsonpath'; readonly template: string };

export function withOutputFlag(command: Command): Command {
  return command.option('-o, --output <format>', 'table, wide, json, yaml, name or jsonpath=<template>', 'table');
}

export function outputFormatFrom(text: string): OutputFormat {
  const [, template] = /^jsonpath=(.*)$/s.exec(text) ?? [];
  if (template !== undefined) {
    if (template === '')
      throw new UsageError('-o jsonpath needs a template, such as jsonpath={.items[*].metadata.name}');
    return { kind: 'jsonpath', template };
  }
  switch (text) {
    case 'table':
    case 'wide':
    case 'json':
    case 'yaml':
    case 'name':
      return { kind: text };
    default:
      throw new UsageError(`--output must be table, wide, json, yaml, name or jsonpath=<template>, found "${text}"`);
  }
}
