import { IconAlertTriangle, IconCheck, IconRefresh, IconTrendingUp, type Icon } from '@tabler/icons-react';
import type { QueueOverview } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import tones from '@/shared/tones.module.css';
import { isKnown, wordsOf, type Word } from './health';
import classes from './QueuesPage.module.css';

const SHAPES: Record<Word, [Icon, string | undefined]> = {
  idle: [IconAlertTriangle, tones.bad],
  growing: [IconTrendingUp, tones.warn],
  retrying: [IconRefresh, tones.redriving],
};

/** How a queue is, by words and shapes; what the broker does not tell is not called well. */
export function QueueHealth({ queue }: { queue: QueueOverview }) {
  const { queues } = useText();
  const { health: text } = queues;
  const format = useFormat();
  const words = wordsOf(queue);
  const why: Record<Word, string> = {
    idle: text.idleWhat,
    growing: text.growingWhat,
    retrying: text.retryingWhat(format.number(queue.delayed ?? 0)),
  };
  if (words.length === 0) {
    return isKnown(queue) ? (
      <IconCheck size={15} className={classes.well} role="img" aria-label={text.well} />
    ) : (
      <span className="rd-dim" title={queues.unknown}>{text.unknown}</span>
    );
  }
  return (
    <span className={classes.words}>
      {words.map((word) => {
        const [Shape, tone] = SHAPES[word];
        return (
          <span key={word} className={`${tones.badge ?? ''} ${tone ?? ''}`} title={why[word]}>
            <Shape size={13} stroke={2.2} aria-hidden />
            {text[word]}
          </span>
        );
      })}
    </span>
  );
}
