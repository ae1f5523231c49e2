import { useFormat, useText } from '@/locales/language';
import type { Usual } from './redrive-draft';

/** When the run pauses by itself, in words. */
export function useBrakes(): (brakes: Usual['brakes']) => string[] {
  const { runs } = useText();
  const format = useFormat();
  const text = runs.redrive.brakes;
  return (brakes) => {
    const found: string[] = [];
    if (brakes.came_back !== null) found.push(text.back(format.percent(brakes.came_back), format.number(brakes.window)));
    if (brakes.publish_errors !== null) found.push(text.errors(format.number(brakes.publish_errors)));
    if (brakes.backlog !== null) found.push(text.backlog(format.number(brakes.backlog)));
    return found.length === 0 ? [text.none] : found;
  };
}
