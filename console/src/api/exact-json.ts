type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

const MANY_DIGITS = /\d{16}/;

const exact: Reviver = (_key, value, context) => {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
};

/** JSON of our own API. Integers beyond 2^53, as headers may have them, are bigints where the browser can tell. */
export function parseExact(text: string): unknown {
  return MANY_DIGITS.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}
