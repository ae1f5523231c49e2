import type { QueueOverview } from '@/api/types';

export type Word = 'idle' | 'growing' | 'retrying';

/** More than this share above what goes out is no chance. */
const MARGIN = 1.1;

/** What there is to say about a queue, the worst first. Only of what the broker tells: null says nothing. */
export function wordsOf({ ready, delayed, consumers, incoming, outgoing }: QueueOverview): Word[] {
  const words: Word[] = [];
  if (consumers === 0 && ready !== null && ready > 0) words.push('idle');
  if (incoming !== null && outgoing !== null && incoming > 0 && incoming > outgoing * MARGIN && (ready ?? 0) > 0) words.push('growing');
  if (delayed !== null && delayed > 0) words.push('retrying');
  return words;
}

/** Whether the broker tells enough to say that all is well. */
export const isKnown = ({ ready, consumers }: QueueOverview): boolean => ready !== null && consumers !== null;

/** Those that somebody should look at first: without a consumer, with dead letters, growing; then by name. */
export function byNeed(queues: readonly QueueOverview[]): QueueOverview[] {
  const need = (queue: QueueOverview) => {
    const words = wordsOf(queue);
    return (words.includes('idle') ? 4 : 0) + (queue.letters > 0 ? 2 : 0) + (words.includes('growing') ? 1 : 0);
  };
  return [...queues].sort((one, other) => need(other) - need(one) || other.letters - one.letters || one.name.localeCompare(other.name));
}
