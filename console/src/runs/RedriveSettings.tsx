import { Autocomplete, Checkbox, Radio, TextInput } from '@mantine/core';
import { useQueues } from '@/api/queues';
import { useFormat, useText } from '@/locales/language';
import { useBrakes } from './brakes';
import { CanaryFields } from './CanaryFields';
import { EditFields } from './EditFields';
import { numberOf, type Draft, type Field, type Usual } from './redrive-draft';
import classes from './dialogs.module.css';

export interface SettingsProps {
  draft: Draft;
  usual: Usual;
  wrong: ReadonlySet<Field>;
  count: number | undefined;
  onChange: (changes: Partial<Draft>) => void;
}

const UNDER: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'error', 'description'];

/** How the letters are sent: where to, how fast, how carefully, and what is changed. */
export function RedriveSettings(props: SettingsProps) {
  const { runs } = useText();
  const text = runs.redrive;
  const { draft, usual, onChange } = props;
  return (
    <section className={classes.settings} aria-label={text.how}>
      <h3 className={classes.heading}>{text.how}</h3>
      <TargetFields {...props} />
      <PaceFields {...props} />
      <CanaryFields {...props} />
      <BrakesNote brakes={usual.brakes} />
      <Checkbox
        size="xs"
        label={text.quarantined.label}
        description={text.quarantined.help}
        checked={draft.quarantined}
        onChange={(event) => onChange({ quarantined: event.currentTarget.checked })}
      />
      <EditFields {...props} />
    </section>
  );
}

function TargetFields({ draft, wrong, onChange }: SettingsProps) {
  const { runs } = useText();
  const text = runs.redrive.target;
  const queues = useQueues();
  return (
    <Radio.Group
      size="xs"
      label={text.label}
      value={draft.target}
      onChange={(value) => onChange({ target: value })}
      classNames={{ label: classes.label }}
    >
      <div className={classes.choices}>
        <Radio size="xs" value="own" label={text.own} />
        <Radio size="xs" value="other" label={text.other} />
        {draft.target === 'other' && (
          <Autocomplete
            size="xs"
            className={classes.under}
            aria-label={text.queue}
            placeholder={text.queue}
            value={draft.queue}
            data={(queues.data?.items ?? []).map((each) => each.name).slice(0, 500)}
            limit={12}
            error={wrong.has('queue') ? text.missing : undefined}
            onChange={(queue) => onChange({ queue })}
          />
        )}
        <Radio size="xs" value="origin" label={text.origin} />
        {draft.target === 'origin' && <p className={`${classes.under ?? ''} ${classes.warning ?? ''}`}>{text.originWarning}</p>}
      </div>
    </Radio.Group>
  );
}

/** Seconds. */
const WORTH_TELLING = 2;

function PaceFields({ draft, usual, wrong, count, onChange }: SettingsProps) {
  const { runs } = useText();
  const format = useFormat();
  const { pace, limit } = runs.redrive;
  const rate = numberOf(draft.rate) ?? usual.rate;
  const known = usual.rate === null ? pace.unlimited : pace.usual(format.number(usual.rate));
  const seconds = rate !== null && rate > 0 && count !== undefined ? count / rate : 0;
  const takes = seconds < WORTH_TELLING ? '' : ` ${pace.takes(format.duration(seconds))}`;
  return (
    <div className={classes.pair}>
      <TextInput
        size="xs"
        label={pace.label}
        inputWrapperOrder={UNDER}
        description={pace.help(known) + takes}
        value={draft.rate}
        inputMode="decimal"
        placeholder={usual.rate === null ? '' : String(usual.rate)}
        error={wrong.has('rate') ? pace.wrong : undefined}
        onChange={(event) => onChange({ rate: event.currentTarget.value })}
      />
      <TextInput
        size="xs"
        label={limit.label}
        inputWrapperOrder={UNDER}
        description={limit.help}
        value={draft.limit}
        inputMode="numeric"
        error={wrong.has('limit') ? limit.wrong : undefined}
        onChange={(event) => onChange({ limit: event.currentTarget.value })}
      />
    </div>
  );
}

function BrakesNote({ brakes }: { brakes: Usual['brakes'] }) {
  const { runs } = useText();
  const told = useBrakes()(brakes);
  return (
    <p className={classes.note}>
      {runs.redrive.brakes.label} {told.join('; ')}.
    </p>
  );
}
