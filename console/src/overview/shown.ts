import type { SeenGroup } from '@/api/insights';

const FIRST = 9;
const LARGEST = 6;

/** As the server orders them, new ones first; but a flood of small new ones does not hide the largest. */
export function shownOf(seen: readonly SeenGroup[]): SeenGroup[] {
  if (seen.length <= FIRST + LARGEST) return [...seen];
  const largest = seen.slice(FIRST).toSorted((one, other) => other.letters - one.letters);
  const picked = new Set([...seen.slice(0, FIRST), ...largest.slice(0, LARGEST)]);
  return seen.filter((each) => picked.has(each));
}
