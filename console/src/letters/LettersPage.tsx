import { useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { useLetterList, useMatching } from '@/api/letter-lists';
import { problemFrom } from '@/api/problem';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { LazyRedriveDialog } from '@/runs/LazyDialogs';
import { useAddress } from '@/shared/address';
import { Count } from '@/shared/Count';
import { FilterBox } from '@/shared/FilterBox';
import { useKeys } from '@/shared/keys';
import { PageHeader } from '@/shared/PageHeader';
import { useRefusal } from '@/shared/session';
import { useCursor } from '@/shared/useCursor';
import type { DecisionName } from './changes';
import { useColumns } from './columns';
import { Facets } from './Facets';
import { LazyChangeDialog } from './LazyChangeDialog';
import { LetterList } from './LetterList';
import { ListTools, useFacetsShown } from './ListTools';
import { SelectionBar } from './SelectionBar';
import { useChosen } from './useChosen';
import { useRowsNow } from './useRowsNow';
import classes from './LettersPage.module.css';

/** All dead letters, newest first, as far as they match the filter. */
export function LettersPage() {
  const { letters: text, shared } = useText();
  const navigate = useNavigate();
  const address = useAddress();
  const filter = address.get('q');
  const selection = filter === '' ? {} : { q: filter };
  const query = useLetterList(selection);
  const rows = useRowsNow(query.data);
  const { data: matching } = useMatching(selection);
  const cursor = useCursor(rows.length);
  const chosen = useChosen(filter, rows.map((row) => row.id));
  const columns = useColumns();
  const facets = useFacetsShown();
  const box = useRef<HTMLInputElement>(null);
  const [deciding, setDeciding] = useState<DecisionName | null>(null);
  const [redriving, setRedriving] = useState<string[] | 'chosen' | null>(null);
  const refusal = useRefusal('runs:make');
  const current = rows[cursor.at];
  const search = (next: string) => address.set({ q: next });
  useKeys([
    { key: '/', label: shared.keys.search, run: () => box.current?.focus() },
    { key: 'j', label: shared.keys.next, run: cursor.next },
    { key: 'k', label: shared.keys.previous, run: cursor.previous },
    { key: 'x', label: text.select.toggle, run: () => current !== undefined && chosen.toggle(current.id) },
    {
      key: 'Enter',
      label: shared.keys.open,
      run: () => current !== undefined && void navigate(paths.letter(current.id), { state: { filter } }),
    },
    {
      key: 'r',
      label: text.act.redrive,
      run: () => {
        if (refusal !== null) return;
        if (!chosen.isEmpty) setRedriving('chosen');
        else if (current !== undefined) setRedriving([current.id]);
      },
    },
  ]);
  const badFilter = query.error !== null && problemFrom(query.error).column !== null;
  return (
    <>
      <PageHeader
        title={text.title}
        aside={matching != null && <Count of={matching} />}
        actions={<ListTools filter={filter} columns={columns} facets={facets} />}
      />
      <FilterBox value={filter} onSubmit={search} problem={badFilter ? query.error : undefined} inputRef={box} />
      <div className={classes.body} data-facets={(facets.shown && !badFilter) || undefined}>
        {facets.shown && !badFilter && <Facets filter={filter} onFilter={search} />}
        <div className={classes.main}>
          {!badFilter && (
            <LetterList query={query} rows={rows} filter={filter} columns={columns.shown} at={cursor.at} chosen={chosen} onFilter={search} />
          )}
          <SelectionBar
            chosen={chosen}
            listed={rows.length}
            matching={matching}
            onRedrive={() => setRedriving('chosen')}
            onDecide={setDeciding}
          />
        </div>
      </div>
      <LazyChangeDialog name={deciding} chosen={chosen.chosen} onClose={() => setDeciding(null)} onDone={chosen.clear} />
      <LazyRedriveDialog
        opened={redriving !== null}
        selection={Array.isArray(redriving) ? { ids: redriving } : chosen.chosen}
        count={Array.isArray(redriving) ? redriving.length : chosen.count(matching)}
        onClose={() => setRedriving(null)}
      />
    </>
  );
}
