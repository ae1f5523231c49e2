import { Checkbox } from '@mantine/core';
import { useText } from '@/locales/language';
import { useRefusal } from '@/shared/session';
import { headerClass } from './header-class';
import { newOperation, OperationsEditor } from './OperationsEditor';
import { ofHeader } from './operations';
import type { SettingsProps } from './RedriveSettings';
import { SchemaField } from './SchemaField';
import classes from './dialogs.module.css';

/** Changes to every message before it is sent, with what they do to the first few. */
export function EditFields({ draft, wrong, onChange }: SettingsProps) {
  const { runs } = useText();
  const text = runs.redrive.edit;
  const refusal = useRefusal('letters:edit');
  const sensitive = draft.operations.some((each) => ofHeader(each.kind) && headerClass(each.place) === 'sensitive');
  return (
    <div>
      <Checkbox
        size="xs"
        label={text.label}
        description={refusal ?? text.help}
        disabled={refusal !== null}
        checked={draft.editing}
        onChange={(event) => {
          const editing = event.currentTarget.checked;
          onChange({ editing, ...(editing && draft.operations.length === 0 ? { operations: [newOperation()] } : {}) });
        }}
      />
      {draft.editing && (
        <div className={classes.under}>
          <OperationsEditor operations={draft.operations} onChange={(operations) => onChange({ operations })} />
          {(sensitive || draft.sensitive) && (
            <Checkbox
              size="xs"
              label={text.sensitive}
              description={text.sensitiveHelp}
              checked={draft.sensitive}
              onChange={(event) => onChange({ sensitive: event.currentTarget.checked })}
            />
          )}
          <SchemaField
            label={text.schema}
            help={text.schemaHelp}
            value={draft.schema}
            error={wrong.has('schema') ? text.schemaWrong : undefined}
            onChange={(schema) => onChange({ schema })}
          />
        </div>
      )}
    </div>
  );
}
