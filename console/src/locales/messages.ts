import { keep, kept } from '@/shared/kept';
import type { en } from './en';

/** Every language has the same keys. */
export type Messages = typeof en;
export type Language = 'en' | 'pt-BR';

export const LANGUAGES: readonly { id: Language; name: string; short: string }[] = [
  { id: 'en', name: 'English', short: 'EN' },
  { id: 'pt-BR', name: 'Português (Brasil)', short: 'PT' },
];

const KEPT_AS = 'redrive.language';

export async function load(language: Language): Promise<Messages> {
  return language === 'en' ? (await import('./en')).en : (await import('./pt-BR')).ptBR;
}

/** What was chosen here before, else what the browser asks for. */
export function preferred(): Language {
  const chosen = kept(KEPT_AS);
  if (chosen === 'en' || chosen === 'pt-BR') return chosen;
  const first = navigator.languages.find((each) => /^(en|pt)\b/i.test(each));
  return first !== undefined && /^pt/i.test(first) ? 'pt-BR' : 'en';
}

export function choose(language: Language): void {
  keep(KEPT_AS, language);
}
