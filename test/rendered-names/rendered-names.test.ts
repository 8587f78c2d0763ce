import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeMachineConfigs } from '../../src/machine-config/render/merge.ts';
import { canonicalSpec, renderedName } from '../../src/machine-config/render/name.ts';
import { recordedAnswers } from './answers.ts';

test('rendered configs have the names that 4.16 gives them', () => {
  const answers = recordedAnswers();
  assert.ok(answers.length >= 400);
  for (const { Configs, OS, Ext, Pool, name } of answers) {
    const spec = mergeMachineConfigs(Configs, { baseOSContainerImage: OS, baseOSExtensionsContainerImage: Ext });
    assert.ok(spec);
    assert.equal(renderedName(Pool, canonicalSpec(spec)), name);
  }
});
