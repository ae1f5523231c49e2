import { useDebouncedValue } from '@mantine/hooks';
import { useMemo, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Chosen } from '@/api/letter-lists';
import { problemFrom } from '@/api/problem';
import { newKey, useMakeRun, usePlan, usePreview, useUsualRun } from '@/api/runs';
import type { RunAsked } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { useToasts } from '@/shared/toasts';
import { PreviewPanel } from './PreviewPanel';
import { RedriveFooter } from './RedriveFooter';
import { RedriveSettings } from './RedriveSettings';
import { askedOf, draftOf, wrongIn, type Draft, type Usual } from './redrive-draft';
import { newOperation } from './OperationsEditor';
import { useShown } from './useShown';
import classes from './dialogs.module.css';

interface Props {
  chosen: Chosen;
  selected: number | undefined;
  withEdit: boolean;
  onClose: () => void;
  onMade: ((runId: string) => void) | undefined;
}

export default function RedriveForm(props: Props) {
  const usual = useUsualRun();
  return (
    <DataState query={usual} lines={10}>
      {(told) => <Loaded {...props} usual={told} />}
    </DataState>
  );
}

/** A plan that takes quarantined letters is refused without a reason, also where it only counts. */
const LOOKING = 'looking';
const PAUSE = 350;

function useLook(asked: RunAsked, fits: boolean) {
  const [settled] = useDebouncedValue(asked, PAUSE);
  const preview = usePreview(settled, fits);
  const plan = usePlan(useMemo(() => ({ ...settled, reason: LOOKING }), [settled]), fits);
  return { preview, plan, waiting: settled !== asked };
}

function Loaded({ chosen: given, selected, withEdit, usual, onClose, onMade }: Props & { usual: Usual }) {
  const { runs } = useText();
  const navigate = useNavigate();
  const toasts = useToasts();
  const [key] = useState(newKey);
  // What was chosen when the dialog opened: a list behind it that refreshes changes nothing here.
  const [chosen] = useState(given);
  const [draft, setDraft] = useState<Draft>(() => firstDraft(usual, withEdit));
  const change = (changes: Partial<Draft>) => setDraft((old) => ({ ...old, ...changes }));
  const wrong = wrongIn(draft);
  const asked = useMemo(() => askedOf(chosen, draft, usual), [chosen, draft, usual]);
  const { preview, plan, waiting } = useLook(asked, wrong.size === 0);
  const previewed = useShown(preview);
  const planned = useShown(plan);
  const make = useMakeRun();
  const submit = (reason: string) => {
    // Letters that come after somebody has read the number are not sent by it.
    const bounded = 'query' in chosen ? { at_most: planned.shown?.count ?? 0 } : {};
    make.mutate(
      { asked: { ...asked, ...bounded, reason }, key },
      {
        onSuccess: ({ run }) => {
          toasts.done(runs.redrive.made(run.total));
          onMade?.(run.id);
          onClose();
          void navigate(paths.run(run.id));
        },
        onError: () => void plan.refetch(),
      },
    );
  };
  const nothing = plan.error !== null && problemFrom(plan.error).status === 404;
  const count = nothing ? 0 : planned.shown?.count;
  return (
    <>
      <div className={classes.columns}>
        <PreviewPanel
          query={preview}
          shown={previewed.shown}
          current={previewed.current && !waiting}
          selected={selected}
          exact={planned.current && !waiting ? count : undefined}
        />
        <RedriveSettings draft={draft} usual={usual} wrong={wrong} count={count} onChange={change} />
      </div>
      <RedriveFooter
        count={count}
        approval={nothing ? null : (planned.shown?.approval ?? null)}
        current={planned.current && previewed.current && !waiting && wrong.size === 0}
        preview={previewed.shown}
        edits={draft.editing}
        error={make.error ?? (nothing || preview.error !== null ? null : plan.error)}
        failed={preview.error !== null}
        busy={make.isPending}
        onClose={onClose}
        onSubmit={submit}
      />
    </>
  );
}

function firstDraft(usual: Usual, withEdit: boolean): Draft {
  const draft = draftOf(usual);
  return withEdit ? { ...draft, editing: true, operations: [newOperation()] } : draft;
}
