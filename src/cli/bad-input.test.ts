import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CommanderError } from 'commander';
import { InputError } from '../inventory/input-error.ts';
import { buildProgram } from './program.ts';
import { UsageError } from './usage-error.ts';

/** What is wrong with a call is known before any cluster is asked; test/cli looks at the exit codes of real processes. */
describe('calls that are wrong', () => {
  const usage: [string[], RegExp][] = [
    [['get', 'unicorns'], /there is no type "unicorns": known are certs, signers/],
    [['get'], /missing required argument 'type'/],
    [
      ['get', 'certs', '-o', 'xml'],
      /--output must be table, wide, json, yaml, name, jsonpath=<template> or custom-columns=/,
    ],
    [['get', 'certs', '-o', 'custom-columns=NAME'], /custom-columns takes HEADER:path,HEADER:path, found "NAME"/],
    [['get', 'certs', '-o', 'custom-columns=N:.items[}'], /the jsonpath is wrong at character/],
    [['plan', '-o', 'jsonpath={.items[}'], /the jsonpath is wrong at character/],
    [['get', 'certs', '-o', 'jsonpath={.items[}'], /the jsonpath is wrong at character/],
    [['get', 'certs', '-n', 'a', '-A'], /contradict each other/],
    [['get', 'certs', '--from', '.', '--context', 'x'], /--from and --context contradict each other/],
    [['get', 'certs', '--from', '.', '-w'], /--watch and --from contradict each other/],
    [['get', 'nodes', '-n', 'a'], /nodes have no namespace/],
    [['get', 'certs', 'a', '-l', 'x=y'], /names and a selector contradict each other/],
    [['get', 'certs', '-l', 'a b'], /--selector cannot be read/],
    [['get', 'certs', '--field-selector', 'colour=red'], /--field-selector takes state, role/],
    [['get', 'certs', '--sort-by', 'size'], /--sort-by must be/],
    [['get', 'certs', '--now', 'tomorrow'], /--now must be a time/],
    [['get', 'certs', '--request-timeout', 'soon'], /--request-timeout must be a duration/],
    [['get', 'certs', '--kubeconfig', '/does/not/exist'], /\/does\/not\/exist/],
    [['get', 'certs', '--from', '/does/not/exist'], /no such file or folder/],
    [['describe', 'cert'], /say which cert to describe/],
    [['explain', '-f', 'x', '--from', 'y'], /--filename and --from contradict each other/],
    [['graph', '-o', 'png'], /--output must be text, dot, svg or json/],
    [['plan', '--days', '0'], /--days must be a number from 1 to 3660/],
    [['plan', '--force', 'kubelet-client'], /--force must be secret\/<namespace>\/<name>/],
    [['plan', '--force', 'configmap/a/b'], /--force takes Secrets/],
    [
      ['regenerate-leaf', 'secrets', '--all', '-A', '--valid-before', '2026-02-30T00:00:00Z'],
      /--valid-before must be a time/,
    ],
    [['regenerate-leaf', 'pod/x'], /only secrets are taken, found "pod"/],
    [['regenerate-leaf'], /name the secrets, or give --all or a selector/],
    [['remove-old-trust', 'configmaps', '--all', '-A'], /required option '--created-before/],
    [['remove-old-trust', 'configmaps', '--all', '-A', '--created-before', 'x'], /--created-before must be a time/],
    [
      ['remove-old-trust', 'cm', '--all', '-A', '--created-before', '2026-01-01T00:00:00Z', '--exclude-bundles', 'x'],
      /--exclude-bundles must be/,
    ],
    [
      ['regenerate-machine-config-server-serving-cert', '--update-ignition=maybe'],
      /--update-ignition must be true or false/,
    ],
    [['monitor', '-o', 'xml'], /--output must be text or json/],
    [['monitor', '--timeout', '-1s'], /--timeout must be a duration above 0/],
    [['wait', '--for', 'godot'], /--for must be stable, regenerated, rolled-out or updated/],
    [['wait', '--for', 'stable', 'secret/x'], /--for stable takes no objects/],
    [['wait', '--for', 'stable', '--timeout', '1m', '--minimum-stable-period', '5m'], /--timeout must be longer/],
    [['wait', '--for', 'stable', '--timeout', '1m'], /--timeout must be longer than .*, which is 5m/],
    [['wait', '--for', 'stable', '-o', 'table'], /--output must be text, json, yaml, name/],
    [['wait', '--for', 'stable', '-n', 'a', '-A'], /contradict each other/],
    [['monitor', '-n', 'a', '-A'], /contradict each other/],
    [['describe', 'cert', 'a', '-o', 'wide'], /--output must be text, json, yaml, name/],
    [['verify', '-o', 'xml'], /--output must be table, wide, json/],
    [['get', 'certs', '--output-watch-events'], /--output-watch-events goes with --watch only/],
    [['verify', 'no such connection'], /no connection is called "no such connection"/],
    [['verify', '--timeout', 'x'], /--timeout must be a duration/],
    [['completion', 'powershell'], /there is completion for bash, zsh, fish/],
    [['frobnicate'], /unknown command 'frobnicate'/],
    [['get', 'certs', '--frob'], /unknown option '--frob'/],
  ];
  for (const [args, message] of usage) {
    test(args.join(' '), async () => {
      const program = buildProgram('rotunda').configureOutput({ writeErr: () => {} });
      for (const command of program.commands) command.configureOutput({ writeErr: () => {} });
      await assert.rejects(program.parseAsync([...args, ...nowhere(args)], { from: 'user' }), (error: Error) => {
        const isTheirs = [UsageError, InputError, CommanderError].some(kind => error instanceof kind);
        assert.ok(isTheirs, String(error));
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

/** Should a check come too late, this is where it would go: nobody is there. */
function nowhere(args: readonly string[]): string[] {
  const isPossible =
    !args.includes('--kubeconfig') &&
    !args.includes('--from') &&
    !['completion', 'frobnicate', 'explain'].includes(args[0] ?? '');
  return isPossible && args.length > 1 ? ['--kubeconfig', '/dev/null'] : [];
}
