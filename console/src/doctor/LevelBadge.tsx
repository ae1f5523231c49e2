import { IconAlertTriangle, IconCheck, IconHelp, IconX, type Icon } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import tones from '@/shared/tones.module.css';
import type { Level } from './findings';

const SHAPES: Record<Level, [Icon, string | undefined]> = {
  problem: [IconX, tones.bad],
  warn: [IconAlertTriangle, tones.warn],
  unknown: [IconHelp, tones.plain],
  ok: [IconCheck, tones.resolved],
};

/** How bad it is, by its word, its shape and its colour. */
export function LevelBadge({ level, count }: { level: Level; count?: number }) {
  const { doctor: text } = useText();
  const [Shape, tone] = SHAPES[level];
  return (
    <span className={`${tones.badge ?? ''} ${tone ?? ''}`} data-level={level}>
      <Shape size={13} stroke={2.2} aria-hidden />
      {count === undefined ? text.level[level] : text.counts[level](count)}
    </span>
  );
}
