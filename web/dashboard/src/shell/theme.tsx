import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';

export type Theme = 'light' | 'dark' | 'system';

const remembered = 'burano.theme';
const Chosen = createContext<{ theme: Theme; choose: (theme: Theme) => void }>({ theme: 'system', choose: () => undefined });

const stored = (): Theme => {
  const value = localStorage.getItem(remembered);
  return value === 'light' || value === 'dark' ? value : 'system';
};

/** Light or dark, as chosen or as the system is, also when that changes. */
export function ThemeProvider({ children }: { children: ReactNode }) {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const apply = () => {
      const dark = theme === 'dark' || (theme === 'system' && system.matches);
      document.documentElement.classList.toggle('pf-v6-theme-dark', dark);
    };
    apply();
    system.addEventListener('change', apply);
    return () => system.removeEventListener('change', apply);
  }, [theme]);
  const choice = useMemo(
    () => ({
      theme,
      choose: (next: Theme) => {
        localStorage.setItem(remembered, next);
        setTheme(next);
      },
    }),
    [theme],
  );
  return <Chosen.Provider value={choice}>{children}</Chosen.Provider>;
}

export const useTheme = () => useContext(Chosen);
