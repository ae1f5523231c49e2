import { useFormat } from '@/locales/language';
import { useNow } from './now';

interface Props {
  /** As the API tells it. */
  at: string;
  /** "4m ago" instead of "4 minutes ago". */
  brief?: boolean;
  /** Date and time instead of how long ago. */
  absolute?: boolean;
}

/** ISO 8601 with the offset of the viewer's zone, and the zone's name. */
export function exactly(moment: Date): string {
  const offset = -moment.getTimezoneOffset();
  const local = new Date(moment.getTime() + offset * 60_000).toISOString().slice(0, -1);
  const pad = (value: number) => String(Math.floor(Math.abs(value))).padStart(2, '0');
  const zone = offset === 0 ? 'Z' : `${offset < 0 ? '-' : '+'}${pad(offset / 60)}:${pad(offset % 60)}`;
  return `${local}${zone} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
}

/** A moment: how long ago at a glance, and the exact instant on hover. */
export function Instant({ at, brief = false, absolute = false }: Props) {
  const format = useFormat();
  const now = useNow();
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return null;
  const relative = brief ? format.brief(moment, now) : format.relative(moment, now);
  return (
    <time dateTime={at} title={exactly(moment)} style={{ whiteSpace: 'nowrap' }}>
      {absolute ? format.dateTime(moment) : relative}
    </time>
  );
}
