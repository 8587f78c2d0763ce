import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { installPackages } from '../tools/debian.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

/** Where screenshots are kept; not part of the repository. */
const ARTEFACTS = new URL('../../artifacts/console/', import.meta.url).pathname;
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const NO_CHROMIUM = 'no chromium on PATH, and it could not be installed';

/** The `chromium` of this machine, installed with the package client where that is possible; undefined: there is none. */
export function findChromium(): string | undefined {
  const found = onPath('chromium');
  if (found !== undefined) return found;
  try {
    installPackages('chromium');
  } catch {
    return undefined;
  }
  return onPath('chromium');
}

function onPath(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

/** A browser with an empty profile that notes everything a good page does not do. */
export class Browser {
  readonly context: BrowserContext;
  /** Errors and warnings of the page, and requests that went elsewhere. */
  readonly complaints: string[] = [];
  readonly #profile: string;

  private constructor(context: BrowserContext, profile: string) {
    this.context = context;
    this.#profile = profile;
  }

  static async launch(executablePath: string): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'rotunda-chromium-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      headless: true,
      timeout: PATIENCE_MS,
      args: FLAGS,
      viewport: { width: 1280, height: 900 },
    });
    return new Browser(context, profile);
  }

  /** A page that only knows one origin. */
  async open(origin: string): Promise<Page> {
    const page = await this.context.newPage();
    page.on('console', message => {
      if (['error', 'warning'].includes(message.type())) this.complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', error => this.complaints.push(`exception: ${error.message}`));
    page.on('request', request => {
      if (!request.url().startsWith(`${origin}/`)) this.complaints.push(`request to ${request.url()}`);
    });
    return page;
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** Keeps a picture of the page. */
export async function shoot(page: Page, name: string): Promise<void> {
  mkdirSync(ARTEFACTS, { recursive: true });
  await page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds that keeps people out: serious and critical findings. */
export async function barriers(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axeSource);
  const options = { resultTypes: ['violations'], ...(rules === undefined ? {} : { runOnly: rules }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html, failureSummary = '' }) => `${html.slice(0, 160)} ${failureSummary}`)
          .join(' | ')}`,
    );
}
