import { IconBan, IconCheck, IconCircleDot, IconLoader2, IconPlayerTrackNext, IconSearch, IconTool, type Icon } from '@tabler/icons-react';
import type { Verdict } from '@/api/types';
import { useText } from '@/locales/language';
import type { State } from './state';
import classes from './GroupMarks.module.css';

const VERDICT: Record<Verdict, [Icon, string | undefined]> = {
  replayable: [IconPlayerTrackNext, classes.good],
  'requires fix': [IconTool, classes.warn],
  'do not replay': [IconBan, classes.bad],
  investigate: [IconSearch, classes.plain],
};

/** What somebody who has looked says about a group. */
export function VerdictMark({ verdict }: { verdict: Verdict }) {
  const { groups } = useText();
  const [Shape, tone] = VERDICT[verdict];
  return (
    <span className={`${classes.mark ?? ''} ${tone ?? ''}`}>
      <Shape size={13} stroke={2} aria-hidden />
      {groups.verdicts[verdict]}
    </span>
  );
}

const STATE: Record<State, [Icon, string | undefined]> = {
  open: [IconCircleDot, classes.warn],
  underWay: [IconLoader2, classes.moving],
  settled: [IconCheck, classes.good],
};

export function StateMark({ state }: { state: State }) {
  const { groups } = useText();
  const [Shape, tone] = STATE[state];
  return (
    <span className={`${classes.mark ?? ''} ${tone ?? ''}`}>
      <Shape size={13} stroke={2} aria-hidden />
      {groups.state[state]}
    </span>
  );
}
