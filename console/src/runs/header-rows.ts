import { RawJson } from '@/api/raw-json';
import { valueText } from './operations';

export interface HeaderRow {
  id: number;
  name: string;
  /** As it is typed: JSON if it reads as JSON, else text. */
  value: string;
}

/** Text that would read as JSON stands in quotes, so that it stays text. */
export function typedOf(json: string): string {
  if (!json.startsWith('"')) return json;
  const text = JSON.parse(json) as string;
  return valueText(text) === JSON.stringify(text) ? text : json;
}

export function rowsOf(headers: readonly (readonly [string, string])[]): HeaderRow[] {
  return headers.map(([name, json], id) => ({ id, name, value: typedOf(json) }));
}

export const givenHeaders = (rows: readonly HeaderRow[]) => rows.map(({ name, value }) => [name, new RawJson(valueText(value))]);

export function headersDiffer(headers: readonly (readonly [string, string])[], rows: readonly HeaderRow[]): boolean {
  if (headers.length !== rows.length) return true;
  return rows.some(({ name, value }, at) => name !== headers[at]?.[0] || value !== typedOf(headers[at][1]));
}
