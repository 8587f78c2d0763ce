import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KubectlCommand } from './boolean-flags.ts';
import { listed } from './flag-values.ts';

describe('flags as kubectl takes them (spec 70, 2.1 and 7)', () => {
  async function parse(...args: string[]): Promise<{ words: string[]; flags: Record<string, unknown> }> {
    let found: { words: string[]; flags: Record<string, unknown> } | undefined;
    const program = new KubectlCommand('x').exitOverride();
    program
      .command('verb')
      .argument('[words...]')
      .option('--dry-run', '')
      .option('-A, --all-namespaces', '')
      .option('--no-headers', '')
      .option('-o, --output <format>', '')
      .option('-f, --filename <path>', '', listed)
      .action((words: string[], flags: Record<string, unknown>) => {
        found = { words, flags };
      });
    await program.parseAsync(['verb', ...args], { from: 'user' });
    assert.ok(found);
    return found;
  }

  for (const [args, flags] of [
    [['--dry-run=true'], { dryRun: true }],
    [['--dry-run=server'], { dryRun: true }],
    [['--dry-run=false'], {}],
    [['--dry-run=none'], {}],
    [['--all-namespaces=true', '--dry-run'], { allNamespaces: true, dryRun: true }],
    [['-A=false'], {}],
    [['--no-headers=true'], { headers: false }],
    [['-o=json'], { output: 'json' }],
    [['--output=jsonpath={.a=="b"}'], { output: 'jsonpath={.a=="b"}' }],
  ] as const) {
    test(args.join(' '), async () => {
      assert.deepEqual((await parse(...args)).flags, { headers: true, ...flags });
    });
  }

  test('a value that is neither is refused', async () => {
    await assert.rejects(parse('--dry-run=client'), /--dry-run must be true, false, none or server, found "client"/);
    await assert.rejects(parse('--all-namespaces=perhaps'), /--all-namespaces must be true or false, found "perhaps"/);
  });

  test('what follows -- is no flag', async () => {
    assert.deepEqual((await parse('--', '--dry-run=false')).words, ['--dry-run=false']);
  });

  test('a flag that may be given several times takes one word each time, and leaves the arguments alone', async () => {
    const { words, flags } = await parse('-f', 'a,b', 'secret/x', '--filename', 'c', 'secret/y');
    assert.deepEqual(
      [words, flags.filename],
      [
        ['secret/x', 'secret/y'],
        ['a', 'b', 'c'],
      ],
    );
  });
});
