import { Button } from '@mantine/core';
import { useState } from 'react';
import { useCheckPayload } from '@/api/letter-to-edit';
import { useText } from '@/locales/language';
import { ProblemNote } from '@/shared/ProblemNote';
import { Permitted } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { base64OfText } from './byte-text';
import { isJson } from './redrive-draft';
import { SchemaField } from './SchemaField';
import type { Revision } from './useRevision';
import classes from './dialogs.module.css';

const LONGEST = 128 * 1024;

/** The payload as it would be saved, in base64; null: it cannot be. */
function payloadOf({ body, text, written }: Revision): string | null {
  if (written.given === null || body.kind === 'long') return null;
  if (body.kind !== 'text') return written.given.body_encoding === 'base64' ? written.given.body : base64OfText(text);
  return base64OfText(body.layout.saved(text));
}

/** Whether what is about to be saved fits a JSON Schema. */
export function SchemaCheck({ revision }: { revision: Revision }) {
  const { runs } = useText();
  const text = runs.edit.schema;
  const [schema, setSchema] = useState('');
  const check = useCheckPayload(revision.base.letter.id);
  const payload = payloadOf(revision);
  const tooLong = payload !== null && payload.length > (LONGEST * 4) / 3;
  const wrong = schema.trim() !== '' && !isJson(schema);
  const ready = payload !== null && !tooLong && schema.trim() !== '' && !wrong;
  const change = (next: string) => {
    setSchema(next);
    check.reset();
  };
  return (
    <div className={classes.headers}>
      <SchemaField label={text.label} help={text.help} value={schema} error={wrong ? runs.redrive.edit.schemaWrong : undefined} onChange={change} />
      {tooLong && <p className={classes.warning}>{text.tooLong}</p>}
      <div className={classes.row}>
        <Permitted to="runs:make" queue={revision.base.letter.queue}>
          {(refused) => (
            <Button disabled={refused || !ready} loading={check.isPending} onClick={() => check.mutate({ payload: payload ?? '', schema })}>
              {text.check}
            </Button>
          )}
        </Permitted>
      </div>
      {check.error !== null && <ProblemNote error={check.error} />}
      {check.data !== undefined && <Result refused={check.data.refused} misfits={check.data.misfits} />}
    </div>
  );
}

function Result({ refused, misfits }: { refused: string; misfits: readonly string[] }) {
  const { runs } = useText();
  const text = runs.edit.schema;
  if (refused === '' && misfits.length === 0) {
    return (
      <p className={classes.ok} role="status">
        {text.fits}
      </p>
    );
  }
  return (
    <div role="status" className={classes.misfit}>
      <p>{text.misfits}</p>
      <ul>
        {[refused, ...misfits]
          .filter((each) => each !== '')
          .map((each, at) => (
            <li key={at}>
              <Untrusted mono text={each} most={400} />
            </li>
          ))}
      </ul>
    </div>
  );
}
