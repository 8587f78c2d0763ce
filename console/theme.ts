import { useState } from 'preact/hooks';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'rotunda-theme';
const NEXT: Readonly<Record<Theme, Theme>> = { auto: 'light', light: 'dark', dark: 'auto' };

/** Takes the theme of the last visit. */
export function applyStoredTheme(): void {
  apply(stored());
}

export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState(stored());
  const turn = () => {
    const next = NEXT[theme];
    apply(next);
    setTheme(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // A browser that keeps nothing shows the theme until the page is closed.
    }
  };
  return [theme, turn];
}

function apply(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
}

function stored(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : 'auto';
  } catch {
    return 'auto';
  }
}
