import type { LetterRedrive } from '@/api/letter-parts';
import type { FailureJson, Happening, Letter, RevisionJson } from '@/api/types';

/** One thing in the life of a message. */
export type StoryEvent = { at: string; key: string } & (
  | { kind: 'sent'; source: string | null; queue: string }
  | { kind: 'attempt'; failure: FailureJson; number: number }
  | { kind: 'edited'; revision: RevisionJson }
  | { kind: 'redriven'; by: string; run: string | null; redrive: LetterRedrive | null; sentAt: string; reason: string }
  | { kind: 'happened'; happening: Happening }
);

/** What stands first if the moments are the same. */
const RANK = { sent: 0, attempt: 1, edited: 2, happened: 2, redriven: 3 };

const RUN = /^run ([\da-f-]{36})$/;

const momentOf = (event: StoryEvent) => Date.parse(event.at);
const near = (one: string, other: string) => Math.abs(Date.parse(one) - Date.parse(other)) < 5;

/**
 * Everything that is known of a message, in the order it happened: sent, attempts, set apart, decisions, edits, redrives
 * and how they ended. A redrive is one event: when it was taken and when it was sent belong together.
 */
export function storyOf(letter: Letter, redrives: readonly LetterRedrive[] = []): StoryEvent[] {
  const original = letter.revisions[0]?.message ?? letter.message;
  const edits = letter.revisions.filter((each) => each.number > 0);
  const history = letter.history.filter(
    (each) => !(each.what === 'edited' && edits.some((edit) => near(edit.at, each.at))),
  );
  const events: StoryEvent[] = [
    { kind: 'sent', key: 'sent', at: original.sent_at, source: original.source, queue: original.queue },
    ...letter.failures.map(
      (failure, number): StoryEvent => ({ kind: 'attempt', key: `attempt-${number}`, at: failure.at, failure, number }),
    ),
    ...edits.map((revision): StoryEvent => ({ kind: 'edited', key: `edit-${revision.number}`, at: revision.at, revision })),
    ...happened(history, redrives),
  ];
  const placed = events.map((event, place) => ({ event, place }));
  placed.sort((a, b) => momentOf(a.event) - momentOf(b.event) || RANK[a.event.kind] - RANK[b.event.kind] || a.place - b.place);
  return placed.map(({ event }) => event);
}

function happened(history: readonly Happening[], redrives: readonly LetterRedrive[]): StoryEvent[] {
  const events: StoryEvent[] = [];
  for (let at = 0; at < history.length; at++) {
    const happening = history[at];
    if (happening === undefined) continue;
    const next = history[at + 1];
    if (happening.what === 'claimed' && next?.what === 'sent') {
      const redrive = redrives.find((each) => near(each.claimed_at, happening.at)) ?? null;
      const told = happening.reason || next.reason;
      const run = redrive?.run_id ?? RUN.exec(told)?.[1] ?? null;
      // Whoever asked for it is more than the process that did it, and a link to the run more than its id.
      const [by, reason] = [redrive?.by ?? happening.by, RUN.test(told) ? '' : told];
      events.push({ kind: 'redriven', key: `line-${at}`, at: happening.at, by, run, redrive, sentAt: next.at, reason });
      at++;
    } else events.push({ kind: 'happened', key: `line-${at}`, at: happening.at, happening });
  }
  return events;
}

const FEW = 3;

export type StoryPart = StoryEvent | { kind: 'folded'; key: string; events: StoryEvent[] };

/** Long rows of attempts are folded: the first and the last ones tell most. */
export function folded(events: readonly StoryEvent[], opened: ReadonlySet<string>): StoryPart[] {
  const parts: StoryPart[] = [];
  for (let from = 0; from < events.length; ) {
    let to = from;
    while (events[to]?.kind === 'attempt') to++;
    const row = events.slice(from, to);
    const first = row[FEW];
    if (row.length > 2 * FEW + 1 && first !== undefined && !opened.has(first.key)) {
      parts.push(...row.slice(0, FEW), { kind: 'folded', key: first.key, events: row.slice(FEW, -FEW) }, ...row.slice(-FEW));
    } else parts.push(...row);
    const after = events[to];
    if (after !== undefined) parts.push(after);
    from = to + 1;
  }
  return parts;
}
