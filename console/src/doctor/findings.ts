import type { Finding } from '@/api/types';

export const LEVELS = ['problem', 'warn', 'unknown', 'ok'] as const satisfies readonly Finding['level'][];
export const PLACES = ['broker', 'store', 'disk', 'settings'] as const satisfies readonly Finding['place'][];

export type Level = (typeof LEVELS)[number];

/** How many there are of each level, those of which there are any, the worst first. */
export function counted(findings: readonly Finding[]): [Level, number][] {
  return LEVELS.map((level): [Level, number] => [level, findings.filter((each) => each.level === level).length]).filter(
    ([, count]) => count > 0,
  );
}

/** By place, those places of which something is told; within one as the server tells them, the worst first. */
export function byPlace(findings: readonly Finding[]): [Finding['place'], Finding[]][] {
  return PLACES.map((place): [Finding['place'], Finding[]] => [place, findings.filter((each) => each.place === place)]).filter(
    ([, found]) => found.length > 0,
  );
}
