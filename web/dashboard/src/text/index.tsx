// The dashboard's texts: English here is the shape that every other language has.
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';

import { de } from './de';
import { en, type Texts } from './en';

const languages = { en, de } satisfies Record<string, Texts>;

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
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choice = useMemo<Choice>(
    () => ({
      language,
      text: languages[language],
      choose: (next) => {
        localStorage.setItem(remembered, next);
        setLanguage(next);
      },
    }),
    [language],
  );
  return <Chosen.Provider value={choice}>{children}</Chosen.Provider>;
}

/** The texts in the viewer's language. */
export const useText = (): Texts => useContext(Chosen).text;

export const useLanguage = (): Choice => useContext(Chosen);
