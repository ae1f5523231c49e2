import { createContext, use, useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { formatsOf, regionOf, type Formats } from './format';
import { choose, load, type Language, type Messages } from './messages';

interface Spoken {
  language: Language;
  text: Messages;
  format: Formats;
  speak: (language: Language) => void;
}

const LanguageContext = createContext<Spoken | null>(null);

interface Props {
  language: Language;
  messages: Messages;
  children: ReactNode;
}

export function LanguageProvider({ language, messages, children }: Props) {
  const [spoken, setSpoken] = useState({ language, text: messages });
  const speak = useCallback((next: Language) => {
    load(next).then(
      (text) => {
        choose(next);
        setSpoken({ language: next, text });
      },
      // It cannot be loaded while the server is away: the page goes on in the language that it has.
      () => undefined,
    );
  }, []);
  useEffect(() => {
    document.documentElement.lang = spoken.language;
  }, [spoken.language]);
  const value = useMemo(() => ({ ...spoken, speak, format: formatsOf(spoken.language, regionOf(spoken.language)) }), [spoken, speak]);
  return <LanguageContext value={value}>{children}</LanguageContext>;
}

export function useLanguage(): Spoken {
  const found = use(LanguageContext);
  if (found === null) throw new Error('no LanguageProvider around');
  return found;
}

/** The texts of the chosen language: `text.letters.title`. */
export const useText = (): Messages => useLanguage().text;

/** Numbers, moments and durations as the chosen language writes them. */
export const useFormat = (): Formats => useLanguage().format;
