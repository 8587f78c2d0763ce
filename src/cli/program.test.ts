import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { completionScript, SHELLS } from './completion/script.ts';
import { buildProgram } from './program.ts';
import { referenceOf } from './reference.ts';

const program = buildProgram('rotunda');

test('docs/cli.md is what the program says of itself', () => {
  const stored = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  assert.equal(stored, referenceOf(program), 'run: node src/cli/reference.ts > docs/cli.md');
});

test('the six verbs of oc adm ocp-certificates go by their own names', () => {
  const names = program.commands.map(command => command.name());
  for (const verb of [
    'regenerate-leaf',
    'regenerate-top-level',
    'remove-old-trust',
    'monitor-certificates',
    'regenerate-machine-config-server-serving-cert',
    'update-ignition-ca-bundle-for-machine-config-server',
  ]) {
    assert.ok(names.includes(verb), verb);
  }
});

test('every command says in one line what it does; flags mean the same thing everywhere', () => {
  const short = new Map<string, string>();
  for (const command of program.commands.filter(candidate => candidate.name() !== 'help')) {
    assert.ok(command.summary() !== '' && !command.summary().includes('\n'), command.name());
    for (const { short: letter, long } of command.options) {
      if (letter === undefined || long === undefined) continue;
      assert.equal(short.get(letter) ?? long, long, `${letter} of ${command.name()}`);
      short.set(letter, long);
    }
  }
});

test('as a kubectl plugin its help says so, in the examples too', () => {
  const plugin = buildProgram('/usr/local/bin/kubectl-rotunda');
  assert.match(plugin.helpInformation(), /^Usage: kubectl rotunda /);
  let withExamples = 0;
  for (const command of plugin.commands) {
    let text = '';
    command.configureOutput({ writeOut: part => (text += part) });
    command.outputHelp();
    const [, examples] = text.split('\nExamples:\n');
    for (const line of examples?.trimEnd().split('\n') ?? []) assert.match(line, /kubectl rotunda [a-z]/);
    if (examples !== undefined) withExamples++;
  }
  assert.ok(withExamples >= 5, String(withExamples));
});

describe('completion', () => {
  for (const shell of SHELLS) {
    test(`${shell} knows every command, its flags and the types of get`, () => {
      const script = completionScript(program, shell);
      for (const command of program.createHelp().visibleCommands(program)) {
        if (command.name() !== 'help') assert.ok(script.includes(command.name()), command.name());
      }
      for (const word of ['signers', 'valid-before', 'kubeconfig']) assert.ok(script.includes(word), word);
    });
  }
});
