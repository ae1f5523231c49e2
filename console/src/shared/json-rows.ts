import { Kind, type JsonIndex } from './json-index';

export interface Row {
  node: number;
  depth: number;
  /** Of an array's element: its place. */
  place: number | null;
  open: boolean;
  /** Instead of a node: so many children of it are not shown yet. */
  hidden: number;
}

export interface Opened {
  /** Nodes that are open, with how many of their children are shown. */
  shown: ReadonlyMap<number, number>;
}

export const PAGE = 100;

/** The rows from `first` on, at most `most`, and whether there are more. Walks no further than that. */
export function rowsOf(index: JsonIndex, { shown }: Opened, first: number, most: number): { rows: Row[]; more: boolean } {
  const rows: Row[] = [];
  let passed = 0;
  const push = (row: Row): boolean => {
    if (passed++ >= first) rows.push(row);
    return rows.length <= most;
  };
  const isOpen = (node: number) => shown.has(node) && index.children(node) > 0;
  const stack: { node: number; next: number; place: number }[] = [];
  const enter = (node: number) => stack.push({ node, next: node + 1, place: 0 });
  let going = push({ node: 0, depth: 0, place: null, open: isOpen(0), hidden: 0 });
  if (isOpen(0)) enter(0);
  for (let inside = stack.at(-1); going && inside !== undefined; inside = stack.at(-1)) {
    const total = index.children(inside.node);
    const limit = Math.min(total, shown.get(inside.node) ?? 0);
    if (inside.place >= limit) {
      stack.pop();
      if (limit < total) going = push({ node: inside.node, depth: stack.length + 1, place: null, open: false, hidden: total - limit });
      continue;
    }
    const node = inside.next;
    const place = index.kind(inside.node) === Kind.array ? inside.place : null;
    inside.place++;
    inside.next = index.after(node);
    going = push({ node, depth: stack.length, place, open: isOpen(node), hidden: 0 });
    if (isOpen(node)) enter(node);
  }
  return { rows: rows.slice(0, most), more: rows.length > most };
}

/** What is open at first: the outer levels, as far as they have few children. */
export function openedAtFirst(index: JsonIndex, levels = 3, most = 60): Map<number, number> {
  const shown = new Map<number, number>();
  let level = index.size > 0 ? [0] : [];
  let budget = most;
  for (let depth = 0; depth < levels; depth++) {
    const next: number[] = [];
    for (const node of level) {
      const count = index.children(node);
      if (count === 0 || (depth > 0 && count > budget)) continue;
      shown.set(node, Math.min(count, PAGE));
      budget -= Math.min(count, PAGE);
      for (let child = node + 1, at = 0; at < Math.min(count, PAGE); at++, child = index.after(child)) next.push(child);
    }
    level = next;
  }
  return shown;
}
