import {
  IconArrowBackUp,
  IconBan,
  IconCheck,
  IconCircleDot,
  IconClockPause,
  IconEyeCheck,
  IconLoader2,
  IconLock,
  IconPlayerPause,
  IconPlayerStop,
  IconX,
  type Icon,
} from '@tabler/icons-react';
import type { RunStatus, Status } from '@/api/types';
import { useText } from '@/locales/language';
import { known } from './known';
import tones from './tones.module.css';
import classes from './StatusBadge.module.css';

type Tone = 'pending' | 'redriving' | 'redriven' | 'resolved' | 'discarded' | 'quarantined' | 'bad';

const LETTER: Record<Status, [Icon, Tone]> = {
  PENDING: [IconCircleDot, 'pending'],
  REDRIVING: [IconLoader2, 'redriving'],
  REDRIVEN: [IconArrowBackUp, 'redriven'],
  RESOLVED: [IconCheck, 'resolved'],
  DISCARDED: [IconBan, 'discarded'],
  QUARANTINED: [IconLock, 'quarantined'],
};
const RUN: Record<RunStatus, [Icon, Tone]> = {
  AWAITING_APPROVAL: [IconEyeCheck, 'quarantined'],
  RUNNING: [IconLoader2, 'redriving'],
  PAUSED: [IconPlayerPause, 'pending'],
  STOPPED: [IconPlayerStop, 'bad'],
  CANCELLED: [IconBan, 'discarded'],
  FAILED: [IconX, 'bad'],
  DONE: [IconCheck, 'resolved'],
};

/** A status by its word, its shape and its colour: the colour alone says nothing. */
export function StatusBadge({ status }: { status: Status | RunStatus }) {
  const { shared } = useText();
  const words: Record<string, string> = { ...shared.status, ...shared.runStatus };
  const [Shape, tone] = known<[Icon, Tone]>({ ...LETTER, ...RUN }, status) ?? [IconClockPause, 'discarded'];
  return (
    <span className={[classes.status, tones.badge, tones[tone]].join(' ')} data-status={status}>
      <Shape size={13} stroke={2.2} aria-hidden />
      {known(words, status) ?? status}
    </span>
  );
}
