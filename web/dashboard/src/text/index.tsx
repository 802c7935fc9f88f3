// The dashboard's texts: English here is the shape that every other language has.
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';

import { en, type Texts } from './en';

/** English is always there; the others are loaded by those who read them. */
const languages = {
  en: () => Promise.resolve(en),
  de: () => import('./de').then((module) => module.de),
} satisfies Record<string, () => Promise<Texts>>;

export type Language = keyof typeof languages;

/** What each language calls itself. */
export const languageNames: Record<Language, string> = { en: 'English', de: 'Deutsch' };

const remembered = 'burano.language';

/** The language that was chosen, else the browser's where there is one of these. */
export function preferred(stored: string | null, browser: readonly string[]): Language {
  for (const wanted of [stored, ...browser]) {
    const name = wanted?.slice(0, 2).toLowerCase();
    if (name && name in languages) return name as Language;
  }
  return 'en';
}

interface Choice {
  language: Language;
  choose: (language: Language) => void;
  text: Texts;
}

const Chosen = createContext<Choice>({ language: 'en', choose: () => undefined, text: en });

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(() => preferred(localStorage.getItem(remembered), navigator.languages));
  const [shown, setShown] = useState<{ language: Language; text: Texts } | null>(language === 'en' ? { language, text: en } : null);
  useEffect(() => {
    let current = true;
    languages[language]().then(
      (text) => current && setShown({ language, text }),
      () => current && setShown((before) => before ?? { language: 'en', text: en }),
    );
    return () => {
      current = false;
    };
  }, [language]);
  useEffect(() => {
    if (shown) document.documentElement.lang = shown.language;
  }, [shown]);
  const choice = useMemo<Choice | null>(
    () =>
      shown && {
        ...shown,
        choose: (next) => {
          localStorage.setItem(remembered, next);
          setLanguage(next);
        },
      },
    [shown],
  );
  return choice && <Chosen.Provider value={choice}>{children}</Chosen.Provider>;
}

/** The texts in the viewer's language. */
export const useText = (): Texts => useContext(Chosen).text;

export const useLanguage = (): Choice => useContext(Chosen);
