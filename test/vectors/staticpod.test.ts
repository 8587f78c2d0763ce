/**
 * Runs staticpod-vectors.json through the functions the controllers and programs use. A case of a kind that this file does
 * not know fails; kinds of the folder controller/ are run beside its code and only counted here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Adapter, Case } from './staticpod/case.ts';
import { hardened, runGroup } from './run-case.ts';
import { installerAdapters } from './staticpod/installer.ts';
import { kubeAdapters } from './staticpod/kube.ts';
import { nodeAdapters } from './staticpod/node.ts';
import { reportAdapters } from './staticpod/reports.ts';
import { revisionAdapters } from './staticpod/revision.ts';
import { smallAdapters } from './staticpod/small.ts';

const { cases } = JSON.parse(readFileSync(new URL('staticpod-vectors.json', import.meta.url), 'utf8')) as { cases: Case[] };

const adapters: Record<string, Adapter> = {
  ...revisionAdapters,
  ...installerAdapters,
  ...reportAdapters,
  ...smallAdapters,
  ...kubeAdapters,
  ...nodeAdapters,
};

/** Run in src/controller/vectors.test.ts, beside the code. */
const OF_CONTROLLER = /^(status|conditions|management)\.|^factory\.(reconcile|panic|rateLimit|enqueue|namespaceFilter)$/;
const controllerTests = readFileSync(new URL('../../src/controller/vectors.test.ts', import.meta.url), 'utf8');

for (const [kind, group] of Map.groupBy(cases, vector => vector.kind)) {
  if (OF_CONTROLLER.test(kind)) {
    test(`${kind} is run beside the code of controller/`, () => assert.ok(controllerTests.includes(`'${kind}'`)));
    continue;
  }
  const adapter = adapters[kind] ?? (() => assert.fail(`no adapter for cases of kind ${kind}`));
  runGroup(
    kind,
    group.map(({ id, given, expected, expectedHardened }) => ({
      name: id,
      given,
      expected: hardened(expected, expectedHardened),
      run: adapter,
    })),
  );
}
