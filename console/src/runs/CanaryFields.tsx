import { Checkbox, TextInput } from '@mantine/core';
import { useFormat, useText } from '@/locales/language';
import { numberOf } from './redrive-draft';
import type { SettingsProps } from './RedriveSettings';
import classes from './dialogs.module.css';

/** First a few, then more; and what stops it. */
export function CanaryFields({ draft, wrong, onChange }: SettingsProps) {
  const { runs } = useText();
  const format = useFormat();
  const text = runs.redrive.canary;
  const share = numberOf(draft.back);
  return (
    <div>
      <Checkbox
        size="xs"
        label={text.label}
        description={text.help}
        checked={draft.canary}
        onChange={(event) => onChange({ canary: event.currentTarget.checked })}
      />
      {draft.canary && (
        <div className={classes.under}>
          <div className={classes.triple}>
            <TextInput
              size="xs"
              label={text.steps}
              value={draft.steps}
              error={wrong.has('steps') ? text.wrong : undefined}
              title={text.stepsHelp}
              onChange={(event) => onChange({ steps: event.currentTarget.value })}
            />
            <TextInput
              size="xs"
              label={text.wait}
              value={draft.wait}
              inputMode="decimal"
              error={wrong.has('wait') ? text.wrongNumber : undefined}
              onChange={(event) => onChange({ wait: event.currentTarget.value })}
            />
            <TextInput
              size="xs"
              label={text.back}
              value={draft.back}
              inputMode="decimal"
              error={wrong.has('back') ? text.wrongNumber : undefined}
              onChange={(event) => onChange({ back: event.currentTarget.value })}
            />
          </div>
          {share !== null && <p className={classes.note}>{text.stops(format.percent(share / 100))}</p>}
        </div>
      )}
    </div>
  );
}
