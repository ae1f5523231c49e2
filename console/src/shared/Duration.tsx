import { useFormat } from '@/locales/language';

/** "2h 5m"; the seconds on hover. */
export function Duration({ seconds }: { seconds: number }) {
  const format = useFormat();
  return <span title={`${format.number(seconds)} s`}>{format.duration(seconds)}</span>;
}
