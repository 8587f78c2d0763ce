import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import type { ContainerRuntimeSettings } from '../../machine-config-api/machine-config.ts';
import { checkContainerRuntimeConfig, containerRuntimeFiles } from './render.ts';

function filesOf(containerRuntimeConfig: ContainerRuntimeSettings): Record<string, string> {
  const object = { spec: { containerRuntimeConfig } };
  checkContainerRuntimeConfig(object);
  return Object.fromEntries(
    containerRuntimeFiles(object).map(({ path, contents }) => [
      path.replace(/^.*\//, ''),
      decodeDataUrl(contents?.source ?? '')?.toString() ?? '',
    ]),
  );
}

describe('a ContainerRuntimeConfig', () => {
  test('no limit of processes is said, so that it outdoes an earlier one', () => {
    assert.deepEqual(filesOf({ pidsLimit: 0 }), {
      '01-ctrcfg-pidsLimit': '[crio]\n  [crio.runtime]\n    pids_limit = 0\n',
    });
    assert.deepEqual(filesOf({}), {});
  });

  const sizes: [string | number, string | undefined][] = [
    ['8193', '8193'],
    ['9k', '9000'],
    ['10Ki', '10240'],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['16Ei', '9223372036854775807'],
    ['10000.0000001', '10001'],
    ['-1', '-1'],
    ['0', undefined],
    [10_000, '10000'],
  ];
  for (const [logSizeMax, bytes] of sizes) {
    test(`a log of ${logSizeMax} is exact`, () => {
      const text = filesOf({ logSizeMax })['01-ctrcfg-logSizeMax'];
      assert.equal(text, bytes === undefined ? undefined : `[crio]\n  [crio.runtime]\n    log_size_max = ${bytes}\n`);
    });
  }

  const overlays: [string, string][] = [
    ['8G', '8G'],
    ['8000M', '8G'],
    ['1e10', '10e9'],
    // containers/storage knows no such suffix: it would start no container.
    ['8Gi', '8589934592'],
    ['1.5Gi', '1610612736'],
    ['1E', '1000000000000000000'],
  ];
  for (const [overlaySize, size] of overlays) {
    test(`an overlay of ${overlaySize} is one that containers/storage reads`, () =>
      assert.match(filesOf({ overlaySize })['storage.conf'] ?? '', new RegExp(`^size = "${size}"$`, 'm')));
  }

  const refused: [ContainerRuntimeSettings, RegExp][] = [
    [{ pidsLimit: 19 }, /pidsLimit: invalid PidsLimit 19$/],
    [{ pidsLimit: 2 ** 60 }, /pidsLimit: invalid PidsLimit/],
    [{ logSizeMax: '8Ki' }, /logSizeMax: invalid LogSizeMax "8Ki", cannot be less than 8kB$/],
    [{ logSizeMax: '' }, /logSizeMax: "": quantities must match/],
    [{ logSizeMax: '1e20' }, /logSizeMax: "1e20": is more than fits 64 bits/],
    [{ logSizeMax: '10GI' }, /logSizeMax: "10GI": quantities must match/],
    [{ overlaySize: '-1' }, /overlaySize: invalid overlaySize "-1", cannot be less than 0$/],
    [{ overlaySize: '5Kii' }, /overlaySize: "5Kii": unable to parse quantity's suffix/],
    [{ logLevel: 'Debug' }, /logLevel: invalid LogLevel "Debug"/],
    [{ defaultRuntime: 'kata' }, /defaultRuntime: invalid DefaultRuntime "kata"/],
  ];
  for (const [settings, message] of refused) {
    test(`${JSON.stringify(settings)} is refused`, () =>
      assert.throws(() => filesOf(settings), { name: 'ContainerRuntimeConfigError', message }));
  }
});
