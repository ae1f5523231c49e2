import { Button } from '@mantine/core';
import {
  IconAlertTriangle,
  IconArrowBackUp,
  IconArrowForwardUp,
  IconBan,
  IconCheck,
  IconCircleDot,
  IconLock,
  IconMailOff,
  IconPencil,
  IconRotate,
  IconSend,
  type Icon,
} from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { useLetterRedrives } from '@/api/letter-parts';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { Duration } from '@/shared/Duration';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import tones from '@/shared/tones.module.css';
import { folded, storyOf, type StoryEvent, type StoryPart } from './story';
import { StoryLine } from './StoryLine';
import classes from './Story.module.css';

const PAGE = 150;

const SHAPES: Record<string, [Icon, string]> = {
  sent: [IconSend, 'plain'],
  attempt: [IconAlertTriangle, 'bad'],
  edited: [IconPencil, 'plain'],
  redriven: [IconArrowBackUp, 'redriven'],
  recorded: [IconMailOff, 'pending'],
  imported: [IconMailOff, 'pending'],
  confirmed: [IconCheck, 'resolved'],
  resolved: [IconCheck, 'resolved'],
  'came back': [IconArrowForwardUp, 'bad'],
  refused: [IconBan, 'bad'],
  discarded: [IconBan, 'plain'],
  expired: [IconBan, 'plain'],
  restored: [IconRotate, 'pending'],
  quarantined: [IconLock, 'quarantined'],
  released: [IconRotate, 'pending'],
};

const shapeOf = (event: StoryEvent) =>
  known(SHAPES, event.kind === 'happened' ? event.happening.what : event.kind) ?? ([IconCircleDot, 'plain'] as const);

interface Props {
  letter: Letter;
  onTrace: (attempt: number) => void;
}

/** The life of a message from top to bottom, with the time that passed in between. */
export function Story({ letter, onTrace }: Props) {
  const { letters: text } = useText();
  const redrives = useLetterRedrives(letter.id);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [most, setMost] = useState(PAGE);
  const events = useMemo(() => storyOf(letter, redrives.data?.items), [letter, redrives.data]);
  const parts = useMemo(() => folded(events, opened), [events, opened]);
  const shown = parts.slice(0, most);
  return (
    <>
      <ol className={classes.story} aria-label={text.story.title}>
        {shown.map((part, at) => (
          <Part
            key={part.key}
            part={part}
            before={shown[at - 1]}
            onTrace={onTrace}
            onUnfold={(key) => setOpened(new Set([...opened, key]))}
          />
        ))}
      </ol>
      {parts.length > most && <Button onClick={() => setMost(most + PAGE)}>{text.story.more(Math.min(PAGE, parts.length - most))}</Button>}
    </>
  );
}

interface PartProps {
  part: StoryPart;
  before: StoryPart | undefined;
  onTrace: (attempt: number) => void;
  onUnfold: (key: string) => void;
}

function Part({ part, before, onTrace, onUnfold }: PartProps) {
  const { letters: text } = useText();
  if (part.kind === 'folded') {
    return (
      <li className={classes.folded}>
        <Button size="compact-xs" variant="subtle" onClick={() => onUnfold(part.key)}>
          {text.story.hiddenAttempts(part.events.length)}
        </Button>
      </li>
    );
  }
  const [Shape, tone] = shapeOf(part);
  const passed = passedBetween(before, part);
  return (
    <li className={classes.event}>
      {passed !== null && (
        <span className={classes.passed}>
          + <Duration seconds={passed} />
        </span>
      )}
      <span className={`${classes.dot ?? ''} ${tones[tone] ?? ''}`}>
        <Shape size={14} stroke={2} aria-hidden />
      </span>
      <div className={classes.words}>
        <StoryLine event={part} onTrace={onTrace} />
      </div>
      <span className={classes.when}>
        <Instant at={part.at} absolute />
      </span>
    </li>
  );
}

const SHORTEST = 0.001;

/** Seconds since what stands before; null: nothing worth telling. */
function passedBetween(before: StoryPart | undefined, event: StoryEvent): number | null {
  const since = before?.kind === 'folded' ? before.events.at(-1)?.at : before?.at;
  if (since === undefined) return null;
  const passed = (Date.parse(event.at) - Date.parse(since)) / 1000;
  return passed < SHORTEST ? null : passed;
}
