import { Button, SegmentedControl, Skeleton, Switch } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { useFormat, useText } from '@/locales/language';
import { LONGEST, positionOf } from './edit-body';
import { depthOf } from './json-layout';
import type { Revision } from './useRevision';
import classes from './dialogs.module.css';

const PayloadMirror = lazy(() => import('./PayloadMirror'));
const DEEPEST = 400;

/** The payload as text, or its bytes; with what changes against the revision below. */
export function PayloadEditor({ revision }: { revision: Revision }) {
  const { runs } = useText();
  const text = runs.edit.payload;
  const format = useFormat();
  const [diff, setDiff] = useState(true);
  const { body, base } = revision;
  if (body.kind === 'long') {
    return (
      <div className={classes.warning}>
        {text.tooLong(`${format.number(body.body.length)} B`, `${format.number(LONGEST)} B`)} {text.instead}{' '}
        <code className="rd-mono">redrive edit {base.letter.id}</code>
      </div>
    );
  }
  const json = body.kind === 'text' && body.json && depthOf(revision.original) <= DEEPEST;
  return (
    <div>
      <div className={classes.toolbar}>
        <span className={classes.note}>
          {body.kind === 'none' && text.none}
          {body.kind === 'bytes' && text.binary}
          {body.kind === 'text' && (body.place.of === 'data' ? text.data : text.whole)}
          {body.kind === 'text' && body.layout.unfolded && ` ${text.kept}`}
        </span>
        {body.kind === 'bytes' && (
          <SegmentedControl
            size="xs"
            value={revision.bytes}
            data={[
              { value: 'hex', label: text.hex },
              { value: 'base64', label: text.base64 },
            ]}
            onChange={(value) => revision.showAs(value)}
          />
        )}
        {body.kind === 'text' && !body.layout.unfolded && json && (
          <Button disabled={revision.written.wrong !== null} onClick={revision.format}>
            {text.format}
          </Button>
        )}
        <Switch size="xs" label={text.diff} checked={diff} onChange={(event) => setDiff(event.currentTarget.checked)} />
      </div>
      <Suspense fallback={<Skeleton height={300} />}>
        <PayloadMirror
          key={`${revision.version}-${json}`}
          text={revision.text}
          original={diff ? revision.original : null}
          language={json ? 'json' : 'text'}
          label={text.label}
          onChange={revision.setText}
        />
      </Suspense>
      <WrongNote revision={revision} />
    </div>
  );
}

function WrongNote({ revision }: { revision: Revision }) {
  const { runs } = useText();
  const text = runs.edit.payload;
  const { wrong } = revision.written;
  if (wrong === null) return null;
  if (wrong.what === 'hex') return <p className={classes.misfit}>{text.wrongHex}</p>;
  if (wrong.what === 'base64') return <p className={classes.misfit}>{text.wrongBase64}</p>;
  const [line, column] = positionOf(revision.text, wrong.at);
  return (
    <p className={wrong.what === 'json' ? classes.misfit : classes.warning} role="status">
      {text.notJson(line, column)} {wrong.what === 'json' ? text.mustBeJson : text.wasJson}
    </p>
  );
}
