/** The page of hand-overs in a real browser, over an API in which a signer is kept by its operator's own passes. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Api, startApi } from '../../src/api/api.ts';
import { type RunningConsole, startConsole } from '../../src/cli/console/server.ts';
import { HandOverWorld, SIGNER } from '../../src/cli/hand-overs/testing.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { Browser, barriers, findChromium, NO_CHROMIUM, shoot } from './browser.ts';

const chromium = findChromium();

describe('hand-overs in a browser', {
  skip: chromium === undefined ? NO_CHROMIUM : false,
  timeout: 3 * PATIENCE_MS,
}, () => {
  let dir = '';
  let api: Api;
  let world: HandOverWorld;
  let served: RunningConsole;
  let browser: Browser;
  let page: Page;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-hand-overs-'));
    api = await startApi();
    writeFileSync(join(dir, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
    world = await HandOverWorld.on(api.kube, new VirtualClock(new Date()), 'a', 'b');
    served = await startConsole({ access: await loadAccess({ path: join(dir, 'kubeconfig') }) });
    browser = await Browser.launch(chromium as string);
    page = await browser.open(served.url);
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(served.loginUrl());
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: 'Hand-overs' }).click();
    await page.getByRole('heading', { name: 'Hand-overs', level: 1 }).waitFor();
  });

  after(async () => {
    await browser?.close();
    await served?.close();
    await api?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const row = (text: string) => page.getByRole('row').filter({ hasText: text });
  const main = () => page.locator('main');
  async function confirm(says: string, done: string): Promise<void> {
    const dialog = page.getByRole('dialog');
    await dialog.getByText(says).waitFor();
    assert.deepEqual(await barriers(page), []);
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await page.locator('.notice').getByText(done).waitFor();
  }

  test('at rest every signer has its phase, and those who are not counted are named', async () => {
    await main().getByText('0 hand-overs under way; 1 signer steady.').waitFor();
    await row(SIGNER.name).getByText('Steady').waitFor();
    assert.equal(await page.getByRole('button', { name: /Take back|Waive/ }).count(), 0);
    await page.evaluate('window.notReloaded = true');
  });

  test('one that begins shows at once: who has answered with which evidence, and who is waited for', async () => {
    world.missing.add('b');
    await world.force();
    await main().getByText('1 hand-over under way; waiting for 1 verifier').waitFor();
    await row('kubelet on a').getByText('Loaded').waitFor();
    await row('kubelet on a').getByText('named it in a handshake').waitFor();
    await row('kubelet on b').getByText('Missing').waitFor();
    await row('kubelet on b').getByText('has not loaded it').waitFor();
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      assert.deepEqual(await barriers(page), [], theme);
      await shoot(page, `hand-over-waits-${theme}`);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    assert.ok(width <= 360, `${width} wide`);
    await page.setViewportSize({ width: 1280, height: 900 });
    assert.equal(await page.evaluate('window.notReloaded'), true);
  });

  test('it is taken back', async () => {
    await page.getByRole('button', { name: `Take back ${SIGNER.name}` }).click();
    await confirm('has signed nothing: it leaves the bundles and is forgotten', 'hand-over taken back');
    await world.settle();
    await main().getByText('0 hand-overs under way; 1 signer steady.').waitFor();
  });

  test('a node is waived by name, and counted again', async () => {
    await world.force();
    await page.getByRole('button', { name: 'Waive b' }).click();
    await confirm(`kubelet on b will refuse what ${SIGNER.name} signs: has not loaded it`, 'node/b waived');
    await page.getByRole('button', { name: 'Wait for b again' }).waitFor();
    await world.settle();
    await main().getByText('0 hand-overs under way; 1 with an old CA still trusted').waitFor();
    await row(SIGNER.name).getByText('Retiring').waitFor();
    await page.getByRole('button', { name: 'Wait for b again' }).click();
    await confirm('Hand-overs wait again for what runs on it.', 'node/b is waited for again');
    await page.getByRole('button', { name: 'Wait for b again' }).waitFor({ state: 'detached' });
    assert.deepEqual(browser.complaints, []);
  });
});
