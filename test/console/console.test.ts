/** The console in a real browser, over a cluster on this machine whose servers are stand-ins. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { clusterProber } from '../../src/cli/console/prober.ts';
import { type RunningConsole, startConsole } from '../../src/cli/console/server.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { SECRETS, SERVICE_ACCOUNTS } from '../../src/kube/resource.ts';
import { type LocalCluster, startLocalCluster } from '../../src/local/cluster.ts';
import { MACHINE_CONFIG_POOLS } from '../../src/machine-config-api/machine-config.ts';
import type { Prober } from '../../src/trust/prober.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { Browser, barriers, findChromium, NO_CHROMIUM, shoot } from './browser.ts';

const chromium = findChromium();
const LEAF = { namespace: 'openshift-kube-apiserver', name: 'internal-loadbalancer-serving-certkey' };
const SIGNER = { namespace: 'openshift-kube-apiserver-operator', name: 'aggregator-client-signer' };
const SIGNED = { namespace: 'openshift-kube-apiserver', name: 'aggregator-client' };
const LEAF_PAGE = `#/certificates/secret/${LEAF.namespace}/${LEAF.name}`;
const PAGES = [
  ['overview', '#/', 'Rotates next'],
  ['certificates', '#/certificates', 'loadbalancer-serving-signer'],
  ['certificate', LEAF_PAGE, 'Why and when next'],
  ['bundle', '#/certificates/configmap/openshift-kube-apiserver-operator/loadbalancer-serving-ca', 'Authorities'],
  ['graph', '#/graph', 'Choose a box'],
  ['graph-list', '#/graph?view=list', 'trusted in'],
  ['handshakes', '#/graph?view=handshakes', 'Last accepted'],
  ['hand-overs', '#/hand-overs', 'All signers'],
  ['rollouts', '#/rollouts', 'Operators'],
  ['machine-config', '#/machine-config', 'worker'],
  ['timeline', '#/timeline', 'New certificate'],
  ['events', '#/events', 'SecretCreated'],
] as const;
/** Long: a busy machine is no fault of the page. */

describe('the console in a browser', {
  skip: chromium === undefined ? NO_CHROMIUM : false,
  timeout: 3 * PATIENCE_MS,
}, () => {
  let dir = '';
  let cluster: LocalCluster;
  let prober: Prober;
  let served: RunningConsole;
  let browser: Browser;
  let page: Page;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-console-'));
    cluster = await startLocalCluster({
      dir,
      controlPlane: 1,
      workers: 1,
      keyAlgorithm: 'P-256',
      programs: { useRealBinaries: false },
    });
    const access = await loadAccess({ path: cluster.kubeconfigPath });
    prober = await clusterProber(cluster.kube);
    prober.start();
    served = await startConsole({ access, kube: cluster.kube, prober });
    browser = await Browser.launch(chromium as string);
    page = await browser.open(served.url);
    page.setDefaultTimeout(PATIENCE_MS);
  });

  after(async () => {
    await browser?.close();
    await served?.close();
    await prober?.stop();
    await cluster?.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  });

  async function go(hash: string, text: string | RegExp): Promise<void> {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator('main').getByText(text).first().waitFor();
  }

  const fingerprint = async (key: typeof LEAF) => (await cluster.kube.get(SECRETS, key)).data?.['tls.crt'];

  test('without credentials there is the login page and nothing else', async () => {
    await page.goto(`${served.url}/#/certificates`);
    await page.getByRole('heading', { name: 'Log in to Rotunda' }).waitFor();
    assert.equal(await page.locator('table, .tiles').count(), 0);
    assert.equal(await page.evaluate(async () => (await fetch('api/snapshot')).status), 401);
    await shoot(page, 'login');
    assert.deepEqual(await barriers(page), []);
  });

  test('a wrong token and a wrong link are refused', async () => {
    await page.getByLabel('Token').fill('nonsense');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('the cluster does not know this token').waitFor();
    await page.goto('about:blank');
    await page.goto(`${served.url}/#login=nonsense`);
    await page.getByRole('alert').getByText('this link was used already or is too old').waitFor();
    assert.equal(new URL(page.url()).hash, '#/');
    // The browser itself notes each refusal; nothing else may be there.
    assert.deepEqual(
      browser.complaints.filter(text => !text.includes('status of 401')),
      [],
    );
    browser.complaints.length = 0;
  });

  test('the link logs in and vanishes from the address; roll-outs move while one watches', async () => {
    await page.goto('about:blank');
    await page.goto(served.loginUrl());
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.ok(!page.url().includes('login'));
    await go('#/rollouts', 'kube-apiserver');
    await page.evaluate('window.notReloaded = true');
    await page
      .locator('.card', { hasText: 'kube-apiserver' })
      .locator('.node-state', { hasText: 'Ready' })
      .first()
      .waitFor();
    await page
      .getByText(/revision \d+ on 1 of 1 nodes/)
      .nth(1)
      .waitFor();
    await cluster.ready();
    assert.equal(await page.evaluate('window.notReloaded'), true);
  });

  for (const theme of ['light', 'dark'] as const) {
    test(`every page, ${theme}: it shows what it should and keeps nobody out`, async () => {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      for (const [name, hash, text] of PAGES) {
        await go(hash, text);
        // Only colours are other ones in the dark.
        const rules = theme === 'dark' ? ['color-contrast'] : undefined;
        assert.deepEqual(await barriers(page, rules), [], `${name}, ${theme}`);
        await shoot(page, `${name}-${theme}`);
      }
      await page.emulateMedia({ colorScheme: 'light' });
    });
  }

  test('on a phone nothing has to be pushed sideways', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    for (const [name, hash, text] of PAGES) {
      await go(hash, text);
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      assert.ok(width <= 360, `${name} is ${width} wide`);
      await shoot(page, `${name}-phone`);
    }
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Events' }).click();
    await page.getByRole('heading', { name: 'Events', level: 1 }).waitFor();
    assert.deepEqual(await barriers(page), []);
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test('the keyboard is enough: skip link, sorting, a box of the graph; the theme can be chosen', async () => {
    await go('#/certificates', 'Search');
    await page.getByLabel('Search').fill('loadbalancer signer');
    await page
      .locator('.count')
      .getByText(/^[1-9]\d? of/)
      .waitFor();
    await page.getByRole('button', { name: 'Ends' }).press('Enter');
    await page.locator('th[aria-sort=ascending]', { hasText: 'Ends' }).waitFor();
    await go('#/graph', 'Choose a box');
    const box = page.getByRole('button', { name: /^signer loadbalancer-serving-signer/ });
    await box.focus();
    await box.press('Enter');
    await page.getByRole('heading', { name: 'loadbalancer-serving-signer' }).waitFor();
    await page.getByRole('button', { name: 'Show everything' }).press('Enter');
    await page.getByRole('button', { name: 'Theme: auto' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    assert.equal(await page.evaluate('getComputedStyle(document.documentElement).colorScheme'), 'dark');
    await page.getByRole('button', { name: 'Theme: dark' }).click();
  });

  test('a pool is paused and resumed', async () => {
    await go('#/machine-config', 'worker');
    for (const [name, wanted, word] of [
      ['Pause worker', true, 'paused'],
      ['Resume worker', false, 'resumed'],
    ] as const) {
      await page.getByRole('button', { name }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
      await page.locator('.notice').getByText(`machineconfigpool/worker ${word}`).waitFor();
      assert.equal((await cluster.kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' })).spec?.paused, wanted);
    }
    await page.getByRole('button', { name: 'Pause worker' }).waitFor();
  });

  test('a rotation somebody else asks for shows without a reload', async () => {
    await go(LEAF_PAGE, 'Why and when next');
    const before = await page.locator('dd code').last().textContent();
    const body = { metadata: { annotations: { 'auth.openshift.io/certificate-not-after': 'force-regeneration' } } };
    await cluster.kube.patch(SECRETS, LEAF, { type: 'merge', body });
    await page.locator('dd code', { hasText: before ?? '' }).waitFor({ state: 'detached' });
    await page.locator('.feed').getByText('RegenerationFinished').first().waitFor();
    assert.equal(await page.evaluate('window.notReloaded'), true);
    await shoot(page, 'after-rotation');
  });

  test('a forced rotation through the page: the plan first, then the Secret really changes', async () => {
    const before = await fingerprint(SIGNER);
    await go(`#/certificates/secret/${SIGNER.namespace}/${SIGNER.name}`, 'Why and when next');
    await page.getByRole('button', { name: 'Replace this signer' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading', { name: `Replace the signer ${SIGNER.name}` }).waitFor();
    await dialog.getByText('New signer').first().waitFor();
    await dialog.getByText('Bundle rewritten').first().waitFor();
    assert.deepEqual(await barriers(page), []);
    await shoot(page, 'plan-of-an-action');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await fingerprint(SIGNER), before, 'looking changes nothing');
    await page.getByRole('button', { name: 'Replace this signer' }).click();
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await page.locator('.notice').getByText('regeneration set').waitFor();
    await page.locator('.feed').getByText('CertificateChanged').first().waitFor();
    assert.notEqual(await fingerprint(SIGNER), before);
  });

  test('a leaf of the signer in use is made anew, however young that is', async () => {
    await go(`#/certificates/secret/${SIGNED.namespace}/${SIGNED.name}`, 'Why and when next');
    const before = await fingerprint(SIGNED);
    const shown = await page.locator('dd code').last().textContent();
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click();
    await page.locator('.notice').getByText('regeneration set').waitFor();
    await page.locator('dd code', { hasText: shown ?? '' }).waitFor({ state: 'detached' });
    assert.notEqual(await fingerprint(SIGNED), before);
  });

  test('nothing of all this complained, and no request left the console', () => {
    assert.deepEqual(browser.complaints, []);
  });

  test('somebody with a token sees what it may; logging out ends it', async () => {
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in to Rotunda' }).waitFor();
    const kube = new HttpKube(await loadAccess({ path: cluster.kubeconfigPath }));
    await kube.create(SERVICE_ACCOUNTS, { metadata: { namespace: 'default', name: 'visitor' } });
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const answer = await kube.request('POST', '/api/v1/namespaces/default/serviceaccounts/visitor/token', { body });
    await kube.close();
    await page.getByLabel('Token').fill((answer as { status: { token: string } }).status.token);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('system:serviceaccount:default:visitor').waitFor();
    await go('#/', /you may not list .*secrets/);
    assert.equal(await page.locator('.tile', { hasText: 'Certificates' }).getByText('of 0').count(), 1);
    await shoot(page, 'visitor');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in to Rotunda' }).waitFor();
    assert.equal(await page.evaluate(async () => (await fetch('api/snapshot')).status), 401);
  });

  test('a console that was away is found again, with everything', async () => {
    await page.goto('about:blank');
    await page.goto(served.loginUrl());
    await page.locator('.tile', { hasText: 'Signers' }).waitFor();
    await browser.context.setOffline(true);
    await page.evaluate(() => fetch('api/session').catch(() => {}));
    await browser.context.setOffline(false);
    await page.locator('.connection').getByText('Live').waitFor();
  });
});
