import { Button, CloseButton } from '@mantine/core';
import { IconArrowBackUp } from '@tabler/icons-react';
import type { Chosen } from '@/api/letter-lists';
import type { Count } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { Permitted } from '@/shared/session';
import { DECISIONS, type DecisionName } from './changes';
import { DownloadMenu } from './DownloadMenu';
import type { useChosen } from './useChosen';
import classes from './SelectionBar.module.css';

interface Props {
  chosen: ReturnType<typeof useChosen>;
  listed: number;
  matching: Count | null | undefined;
  onRedrive: () => void;
  onDecide: (name: DecisionName) => void;
}

/** What is selected, and what can be done with it. It lies over the end of the page, so the list does not move. */
export function SelectionBar({ chosen, listed, matching, onRedrive, onDecide }: Props) {
  const { letters: text } = useText();
  if (chosen.isEmpty) return null;
  return (
    <section className={classes.bar} aria-label={text.select.actions}>
      <div className={classes.told}>
        <CloseButton size="sm" aria-label={text.select.clear} onClick={chosen.clear} />
        <Told chosen={chosen} listed={listed} matching={matching} />
      </div>
      <div className={classes.actions}>
        <Permitted to="runs:make">
          {(disabled) => (
            <Button variant="filled" disabled={disabled} leftSection={<IconArrowBackUp size={14} aria-hidden />} onClick={onRedrive}>
              {text.act.redrive}
            </Button>
          )}
        </Permitted>
        {DECISIONS.map((name) => (
          <Permitted key={name} to="letters:decide">
            {(disabled) => (
              <Button disabled={disabled} onClick={() => onDecide(name)}>
                {text.act[name]}
              </Button>
            )}
          </Permitted>
        ))}
        <DownloadMenu chosen={chosen.chosen satisfies Chosen} />
      </div>
    </section>
  );
}

function Told({ chosen, listed, matching }: Pick<Props, 'chosen' | 'listed' | 'matching'>) {
  const { letters: text } = useText();
  const format = useFormat();
  const all = format.number(matching?.number ?? 0);
  const exact = matching?.exact === true;
  if (chosen.all) return <strong aria-live="polite">{exact ? text.select.all(all) : text.select.allUncounted(all)}</strong>;
  const more = matching != null && (!exact || matching.number > listed) && chosen.everyListed;
  return (
    <>
      <strong aria-live="polite">{text.select.chosen(chosen.ids.size)}</strong>
      {more && (
        <Button size="compact-xs" variant="subtle" onClick={chosen.chooseAll}>
          {exact ? text.select.chooseAll(all) : text.select.chooseAllUncounted(all)}
        </Button>
      )}
    </>
  );
}
