import { ActionIcon } from '@mantine/core';
import { useDebouncedValue, useMergedRef } from '@mantine/hooks';
import { IconFilter, IconX } from '@tabler/icons-react';
import { useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type Ref, type RefObject } from 'react';
import { useCompletions } from '@/api/filters';
import { ApiProblem } from '@/api/problem';
import { useText } from '@/locales/language';
import { begunAt, namesFor, valuesFor, type Suggestion } from './filter-completion';
import { visible } from './untrusted';
import { Untrusted } from './Untrusted';
import classes from './FilterBox.module.css';

interface Props {
  /** The filter that holds now. */
  value: string;
  onSubmit: (text: string) => void;
  /** What the server says about the filter that holds. */
  problem?: unknown;
  inputRef?: Ref<HTMLInputElement>;
}

/** Names of fields and comparisons are known here; values are asked for once the typing rests. */
function useSuggestions(text: string, cursor: number, open: boolean): Suggestion[] {
  const { shared } = useText();
  const begun = useMemo(() => begunAt(text, cursor), [text, cursor]);
  const own = useMemo(() => {
    if (begun === null) return [];
    return begun.kind === 'name' ? namesFor(begun, shared.filter.fields) : valuesFor(begun, []);
  }, [begun, shared]);
  const asks = open && begun?.kind === 'value' && own.length === 0;
  const [asked] = useDebouncedValue(useMemo(() => ({ text, cursor }), [text, cursor]), 150);
  const current = asked.text === text && asked.cursor === cursor;
  const found = useCompletions(text, cursor, asks && current);
  if (!open) return [];
  return own.length > 0 ? own : (found.data ?? []);
}

interface Draft {
  /** The filter that it began as. */
  of: string;
  text: string;
  cursor: number;
  /** Whether the cursor has to be put there, since it was not the typing that moved it. */
  put: boolean;
}

const draftOf = (value: string): Draft => ({ of: value, text: value, cursor: value.length, put: false });

/** What is being typed. A filter that comes from elsewhere replaces it; typing on while it is asked does not end. */
function useDraft(value: string, open: boolean, input: RefObject<HTMLInputElement | null>) {
  const [draft, setDraft] = useState(() => draftOf(value));
  if (draft.of !== value) {
    const typedOn = draft.text.trimEnd() === value || (value !== '' && draft.text.startsWith(value) && open);
    setDraft(typedOn ? { ...draft, of: value } : draftOf(value));
  }
  useLayoutEffect(() => {
    if (draft.put) input.current?.setSelectionRange(draft.cursor, draft.cursor);
  }, [draft, input]);
  return [draft, setDraft] as const;
}

/** The filter language in one line: completion while typing, Enter to ask, and where it cannot be read. */
export function FilterBox({ value, onSubmit, problem, inputRef }: Props) {
  const { shared } = useText();
  const id = useId();
  const own = useRef<HTMLInputElement>(null);
  const ref = useMergedRef(own, inputRef ?? null);
  const [open, setOpen] = useState(false);
  const [draft, setDraft] = useDraft(value, open, own);
  const [active, setActive] = useState(-1);
  const suggestions = useSuggestions(draft.text, draft.cursor, open);
  const shown = open && suggestions.length > 0;
  const type = (text: string, cursor: number, put = false) => {
    setDraft((old) => ({ ...old, text, cursor, put }));
    setActive(-1);
    setOpen(true);
  };
  const accept = ({ text, from, to }: Suggestion) => {
    const space = /[:.<>=]$/.test(text) ? '' : ' ';
    const next = draft.text.slice(0, from) + text + space + draft.text.slice(to).replace(/^ /, '');
    type(next, from + text.length + space.length, true);
  };
  const submit = (text: string) => {
    setOpen(false);
    onSubmit(text.trim());
  };
  const pressed = (event: KeyboardEvent) => {
    const picked = suggestions[active];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      setOpen(true);
      const step = event.key === 'ArrowDown' ? 1 : -1;
      const size = suggestions.length + 1;
      setActive((old) => ((old + 1 + step + size) % size) - 1);
    } else if ((event.key === 'Enter' || event.key === 'Tab') && shown && picked !== undefined) {
      event.preventDefault();
      accept(picked);
    } else if (event.key === 'Enter') submit(draft.text);
    else if (event.key === 'Escape') {
      if (shown) setOpen(false);
      else own.current?.blur();
    }
  };
  const refused = problem instanceof ApiProblem && draft.text === value ? problem : null;
  return (
    <div className={classes.box}>
      <div className={classes.field} data-invalid={refused !== null || undefined}>
        <IconFilter size={15} stroke={1.8} aria-hidden className={classes.icon} />
        <input
          ref={ref}
          className={classes.input}
          value={draft.text}
          placeholder={shared.filter.placeholder}
          aria-label={shared.filter.label}
          role="combobox"
          aria-expanded={shown}
          aria-controls={shown ? `${id}-list` : undefined}
          aria-activedescendant={shown && active >= 0 ? `${id}-${active}` : undefined}
          aria-invalid={refused !== null}
          aria-describedby={refused === null ? undefined : `${id}-problem`}
          autoComplete="off"
          autoCorrect="off"
          autoCapitalize="off"
          spellCheck={false}
          maxLength={8000}
          onChange={(event) => type(event.currentTarget.value, event.currentTarget.selectionStart ?? 0)}
          onSelect={(event) => {
            const cursor = event.currentTarget.selectionStart ?? 0;
            setDraft((old) => (old.cursor === cursor ? old : { ...old, cursor, put: false }));
          }}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={pressed}
        />
        {draft.text !== '' && (
          <ActionIcon size="sm" aria-label={shared.filter.clear} onClick={() => { type('', 0); submit(''); }}>
            <IconX size={14} aria-hidden />
          </ActionIcon>
        )}
      </div>
      {shown && <SuggestionList id={id} items={suggestions} active={active} onPick={accept} />}
      {refused !== null && <Refusal id={id} problem={refused} filter={value} />}
    </div>
  );
}

interface ListProps {
  id: string;
  items: Suggestion[];
  active: number;
  onPick: (suggestion: Suggestion) => void;
}

function SuggestionList({ id, items, active, onPick }: ListProps) {
  const { shared } = useText();
  return (
    <ul id={`${id}-list`} role="listbox" aria-label={shared.filter.suggestions} className={classes.list}>
      {items.map((each, at) => (
        <li
          key={each.text}
          id={`${id}-${at}`}
          role="option"
          aria-selected={at === active}
          className={classes.option}
          onMouseDown={(event) => {
            event.preventDefault();
            onPick(each);
          }}
        >
          <Untrusted mono text={each.text} most={120} />
          <span className={classes.what}>{each.what}</span>
        </li>
      ))}
    </ul>
  );
}

function Refusal({ id, problem, filter }: { id: string; problem: ApiProblem; filter: string }) {
  const { shared } = useText();
  const { column } = problem;
  const before = column === null ? '' : visible(filter.slice(Math.max(0, column - 41), column - 1));
  return (
    <div id={`${id}-problem`} role="alert" className={classes.problem}>
      {column !== null && filter !== '' && (
        <pre className={classes.pointer} aria-hidden>
          {before}
          {visible(filter.slice(column - 1, column + 40))}
          {'\n'}
          {' '.repeat(before.length)}^
        </pre>
      )}
      <Untrusted text={problem.detail} most={500} />
      {column !== null && <span className="rd-dim"> ({shared.filter.at(column)})</span>}
      {problem.remedy !== '' && (
        <div className="rd-dim">
          <Untrusted text={problem.remedy} most={500} />
        </div>
      )}
    </div>
  );
}
