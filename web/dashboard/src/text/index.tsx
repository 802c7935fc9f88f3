// The dashboard's texts: English here is the shape that every other language has.
import { createContext, use, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';

import type { Texts } from './en';
import { first, type FirstTexts } from './en/first';

interface Loads {
  /** The texts of the first page. */
  first: () => Promise<FirstTexts>;
  all: () => Promise<Texts>;
}

/** The first texts are always loaded in English; all others are loaded on demand. */
const languages = {
  en: { first: () => Promise.resolve(first), all: once(() => import('./en').then((module) => module.en)) },
  de: { first: once(() => import('./de/first').then((module) => module.first)), all: once(() => import('./de').then((module) => module.de)) },
} satisfies Record<string, Loads>;

export type Language = keyof typeof languages;

/** Each language's own name. */
export const languageNames: Record<Language, string> = { en: 'English', de: 'Deutsch' };

const remembered = 'burano.language';

/** Loads something when it is first asked for, and again only where that has failed. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () =>
    (asked ??= load().catch((error: unknown) => {
      asked = undefined;
      throw error;
    }));
}

/** The language that was chosen, else the browser's where there is one of these. */
export function preferred(stored: string | null, browser: readonly string[]): Language {
  for (const wanted of [stored, ...browser]) {
    const name = wanted?.slice(0, 2).toLowerCase();
    if (name && name in languages) return name as Language;
  }
  return 'en';
}

const current = (): Language => preferred(localStorage.getItem(remembered), navigator.languages);

/** Loads all texts, for pages that need more than the first ones. */
export const loadTexts = (): Promise<Texts> => languages[current()].all();

interface Choice<T> {
  language: Language;
  choose: (language: Language) => void;
  text: T;
}

const Chosen = createContext<Choice<FirstTexts>>({ language: 'en', choose: () => undefined, text: first });

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [wanted, setWanted] = useState<{ language: Language; load: keyof Loads }>(() => ({ language: current(), load: 'first' }));
  const [shown, setShown] = useState<{ language: Language; text: FirstTexts } | null>(wanted.language === 'en' ? { language: 'en', text: first } : null);
  useEffect(() => {
    let isWanted = true;
    const { language, load } = wanted;
    languages[language][load]().then(
      (text) => isWanted && setShown({ language, text }),
      () => isWanted && setShown((before) => before ?? { language: 'en', text: first }),
    );
    return () => {
      isWanted = false;
    };
  }, [wanted]);
  useEffect(() => {
    if (shown) document.documentElement.lang = shown.language;
  }, [shown]);
  const choice = useMemo<Choice<FirstTexts> | null>(
    () =>
      shown && {
        ...shown,
        choose: (language) => {
          localStorage.setItem(remembered, language);
          // The page that is shown needs more than the first texts, and stays until they are there.
          setWanted({ language, load: 'all' });
        },
      },
    [shown],
  );
  return choice && <Chosen.Provider value={choice}>{children}</Chosen.Provider>;
}

/** The texts in the viewer's language. Their users wait until they are loaded. */
export const useText = (): Texts => useLanguage().text;

export function useLanguage(): Choice<Texts> {
  const choice = useContext(Chosen);
  return { ...choice, text: use(languages[choice.language].all()) };
}

/** The texts that are loaded from the beginning: for the sign-in and the catalog. */
export const useFirstText = (): FirstTexts => useContext(Chosen).text;

/** The same, with the language and how to choose another. */
export const useFirstLanguage = (): Choice<FirstTexts> => useContext(Chosen);
