type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Picks the form for a number, and writes the number for `#`. */
export function pluralIn(language: string): (count: number, forms: Forms) => string {
  const rules = new Intl.PluralRules(language);
  const numbers = new Intl.NumberFormat(language);
  return (count, forms) => (forms[rules.select(count)] ?? forms.other).replaceAll('#', numbers.format(count));
}
