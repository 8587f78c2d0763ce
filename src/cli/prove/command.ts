import type { Command } from 'commander';
import { withExamples } from '../examples.ts';

export interface ProveFlags {
  readonly nodes: string;
  readonly crashes: string;
  readonly losses: string;
  readonly happenings?: string | undefined;
  readonly without?: string | undefined;
  readonly output: string;
}

/** `rotunda prove`: whether anything can go wrong, in whatever order it happens. */
export function addProve(program: Command): void {
  const command = program
    .command('prove')
    .summary('play a hand-over in every order in which its steps can happen, and say whether anybody is ever refused')
    .description(
      'Explores one signer family with its nodes, from the request for another signer on: every order in which the steps of operators,\n' +
        'agents, processes and people can happen, with so many crashes, losses and other happenings. The real decision is made in each\n' +
        'state. Prints that nobody refuses anybody in any of them, and that the hand-over ends from each once faults are over; or the\n' +
        'shortest way to a refusal. --without leaves a rule out, to see what it is good for. Exit code 1 unless it is proved.',
    )
    .argument('<what>', 'hand-over')
    .option('--nodes <number>', 'nodes, each with two processes that verify and one that shows a leaf: 1 to 3', '3')
    .option('--crashes <number>', 'how often an operator is killed in the middle of a pass: 0 to 3', '1')
    .option('--losses <number>', 'how often a bundle on its way to a node is lost: 0 to 3', '1')
    .option(
      '--happenings <number>',
      'how many of these happen as well: somebody asks again, takes back, turns round, waives a node, deletes one or the leaf, a node\n' +
        'goes away, joins or is replaced by another machine, the leader changes, the signer is about to end: 0 to 3; otherwise 0,\n' +
        'and 1 with --without',
    )
    .option('--without <rule>', 'leave a rule out of the model: HO-2, HO-3, HO-10 or W-1')
    .option('-o, --output <format>', 'text, json, yaml or jsonpath=<template>', 'text')
    .action(async (what: string, flags: ProveFlags) => {
      const { runProve } = await import('./run.ts');
      await runProve(what, flags);
    });
  withExamples(
    command,
    'rotunda prove hand-over',
    'rotunda prove hand-over --nodes 2 --happenings 1',
    'rotunda prove hand-over --without HO-2',
  );
}
