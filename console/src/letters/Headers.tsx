import { Button, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { useFormat, useText } from '@/locales/language';
import { CopyButton } from '@/shared/CopyButton';
import { EmptyState } from '@/shared/EmptyState';
import { Untrusted } from '@/shared/Untrusted';
import table from '@/shared/table.module.css';
import { headerText } from './header-text';
import classes from './Headers.module.css';

const PAGE = 100;
const MOST = 500;
const LONGEST = 2000;

/** Headers in their order, repeats included: some at a time, and found by what is typed. */
export function Headers({ headers }: { headers: readonly unknown[] }) {
  const { letters: text, shared } = useText();
  const format = useFormat();
  const [sought, setSought] = useState('');
  const [most, setMost] = useState(PAGE);
  const [from, setFrom] = useState(0);
  const all = useMemo(() => (headers as [string, unknown][]).map(([name, value]) => ({ name, ...headerText(value) })), [headers]);
  const found = useMemo(() => {
    const needle = sought.trim().toLowerCase();
    if (needle === '') return all;
    return all.filter((each) => each.name.toLowerCase().includes(needle) || each.text.toLowerCase().includes(needle));
  }, [all, sought]);
  if (all.length === 0) return <EmptyState title={text.headers.none.title} what={text.headers.none.what} />;
  const shown = found.slice(from, from + most);
  const left = found.length - from - shown.length;
  const further = () => (most < MOST ? setMost(most + PAGE) : setFrom(from + MOST));
  return (
    <>
      <div className={classes.tools}>
        <TextInput
          size="xs"
          aria-label={text.headers.find}
          placeholder={text.headers.find}
          value={sought}
          onChange={(event) => {
            setSought(event.currentTarget.value);
            setFrom(0);
            setMost(PAGE);
          }}
        />
        <span className="rd-dim" role="status">
          {text.headers.shown(format.number(shown.length), format.number(found.length))}
        </span>
        {from > 0 && <Button onClick={() => setFrom(Math.max(0, from - MOST))}>{shared.json.earlier}</Button>}
      </div>
      {found.length === 0 ? <p className="rd-dim">{text.headers.nothing}</p> : <HeaderTable shown={shown} from={from} />}
      {left > 0 && <Button onClick={further}>{text.headers.more(Math.min(left, PAGE))}</Button>}
    </>
  );
}

interface Shown {
  name: string;
  text: string;
  type: ReturnType<typeof headerText>['type'];
}

function HeaderTable({ shown, from }: { shown: readonly Shown[]; from: number }) {
  const { letters: text } = useText();
  return (
    <table className={`${table.table ?? ''} ${classes.table ?? ''}`}>
      <thead>
        <tr>
          <th scope="col">{text.headers.name}</th>
          <th scope="col">{text.headers.value}</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((each, at) => (
          <tr key={from + at}>
            <td className={classes.name}>
              <Untrusted mono text={each.name} most={300} />
            </td>
            <td className={classes.value}>
              <Untrusted mono text={each.text} most={LONGEST} />
              {each.type !== 'text' && <span className={classes.type}>{text.headers[each.type]}</span>}
              <span className={classes.copy}>
                <CopyButton value={each.text} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
