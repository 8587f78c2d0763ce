import type { Command } from 'commander';
import { withExamples } from '../examples.ts';

export interface TwinFlags {
  readonly years?: string | undefined;
  readonly days?: string | undefined;
  readonly lives: string;
  readonly seed?: string | undefined;
  readonly faults?: string | true | undefined;
  readonly controlPlane: string;
  readonly workers: string;
  readonly handOver: string;
  readonly trace?: boolean | undefined;
  readonly output: string;
}

/** `rotunda twin`: years of a cluster in memory, with faults. */
export function addTwin(program: Command): void {
  const command = program
    .command('twin')
    .summary('live through years of a cluster in memory, with faults, and say whether anybody was refused')
    .description(
      'Runs the real operators and agents in a cluster in memory on a clock of its own. After everything that happens, every process\n' +
        'verifies every other one, and what must never be is looked for. With --faults things go wrong by the seed: crashes, storms, stale\n' +
        'watches, machines that are off for weeks, wrong clocks, people. Prints that nobody was refused but for what the faults made\n' +
        'inevitable; or what was broken, and the shortest story that leads there. The same seed plays it again. Asks no cluster. Ctrl-C\n' +
        'ends it with what was found until then. Exit code 1 when something was broken.',
    )
    .option('--years <number>', 'how long a life lasts: 1 to 1000; 1 unless told otherwise')
    .option('--days <number>', 'the same in days')
    .option(
      '--lives <number>',
      'how many lives, side by side on all cores, each with a seed of its own: 1 to 10000',
      '1',
    )
    .option('--seed <text>', 'what decides everything that happens; printed when it is not given')
    .option('--faults [number]', 'let things go wrong, about so many times a month: 1 to 300; 6 unless told otherwise')
    .option('--control-plane <number>', 'nodes of the control plane: 1 to 9', '3')
    .option('--workers <number>', 'workers: 0 to 50', '2')
    .option('--hand-over <mode>', 'how a new signer comes to sign: receipts or clock', 'receipts')
    .option('--trace', 'print everything that happens; with one life only')
    .option('-o, --output <format>', 'text, json, yaml or jsonpath=<template>', 'text')
    .action(async (flags: TwinFlags) => {
      const { runTwin } = await import('./run.ts');
      await runTwin(flags);
    });
  withExamples(
    command,
    'rotunda twin --years 20',
    'rotunda twin --years 1 --lives 100 --faults --seed 7',
    'rotunda twin --days 30 --faults=20 --seed 7.3 --trace',
  );
}
