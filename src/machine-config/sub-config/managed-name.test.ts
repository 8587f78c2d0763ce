import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SubConfig } from '../../machine-config-api/machine-config.ts';
import { NAME_SUFFIX } from '../../machine-config-api/names.ts';
import { ManagedNameError, managedName } from './managed-name.ts';

describe('the name of a generated config (spec 50, section 7)', () => {
  const object = (name: string, suffix?: string, finalizers: string[] = []): SubConfig => ({
    metadata: { name, finalizers, ...(suffix !== undefined && { annotations: { [NAME_SUFFIX]: suffix } }) },
  });
  const nameOf = (self: SubConfig, ...others: SubConfig[]) => managedName('kubelet', 'b', self, [...others, self]).name;

  test('the name that was given for this pool stays, whatever is remembered of another', () => {
    const self = object('k2', '', ['theirs', '99-a-generated-kubelet', '99-b-generated-kubelet-1']);
    assert.equal(nameOf(self, object('k1', '')), '99-b-generated-kubelet-1');
    assert.equal(nameOf(object('k', '3', ['99-b-generated-kubelet'])), '99-b-generated-kubelet');
  });

  test('a remembered suffix counts where nobody else has it', () => {
    assert.equal(nameOf(object('k2', '2'), object('k1', '')), '99-b-generated-kubelet-2');
    assert.equal(nameOf(object('k2', ''), object('k1', '')), '99-b-generated-kubelet-1');
    const elsewhere = object('k1', '', ['99-b-generated-kubelet-4']);
    assert.equal(nameOf(object('k2', ''), elsewhere), '99-b-generated-kubelet');
    assert.equal(nameOf(object('k2', '4'), elsewhere), '99-b-generated-kubelet-5');
  });

  test('names of other kinds and pools are not of this one', () => {
    const finalizers = ['99-b-generated-containerruntime-2', '99-bb-generated-kubelet-3', '99-b-generated-kubelet-10'];
    assert.equal(nameOf(object('k', undefined, finalizers)), '99-b-generated-kubelet');
  });

  test('a suffix is a number in decimal digits', () => {
    for (const suffix of [' 3', '0x3', '3.0', 'x']) {
      assert.throws(() => nameOf(object('new'), object('k1', suffix)), ManagedNameError);
    }
    assert.equal(nameOf(object('new'), object('k1', '3')), '99-b-generated-kubelet-4');
  });
});
