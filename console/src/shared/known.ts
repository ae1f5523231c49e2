/** What a table has under a name from outside: `__proto__` and `toString` are in none. */
export function known<Value>(table: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
