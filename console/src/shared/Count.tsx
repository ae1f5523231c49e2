import { useFormat, useText } from '@/locales/language';
import type { Count as Counted } from '@/api/types';

interface Props {
  of: number | Counted | null | undefined;
  /** 12K instead of 12,345; the exact number on hover. */
  compact?: boolean;
}

/** A number, or that it is more than one could count in time. */
export function Count({ of, compact = false }: Props) {
  const format = useFormat();
  const text = useText();
  if (of === null || of === undefined) return <span className="rd-dim">–</span>;
  const { number, exact } = typeof of === 'number' ? { number: of, exact: true } : of;
  const whole = format.number(number);
  const written = compact && number >= 10_000 ? format.compact(number) : whole;
  return <span title={written === whole ? undefined : whole}>{exact ? written : text.shared.exact(written)}</span>;
}
