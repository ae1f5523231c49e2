import { Button, FileButton, Textarea } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import { useToasts } from '@/shared/toasts';
import classes from './dialogs.module.css';

interface Props {
  label: string;
  help: string;
  value: string;
  error?: string | undefined;
  onChange: (schema: string) => void;
}

/** A JSON Schema, typed, pasted or from a file. */
export function SchemaField({ label, help, value, error, onChange }: Props) {
  const { runs } = useText();
  const toasts = useToasts();
  return (
    <div className={classes.schema}>
      <Textarea
        size="xs"
        label={label}
        description={help}
        value={value}
        error={error}
        rows={value === '' ? 1 : 5}
        spellCheck={false}
        classNames={{ input: 'rd-mono' }}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <FileButton accept="application/json,.json" onChange={(file) => void file?.text().then(onChange, toasts.problem)}>
        {(props) => (
          <Button {...props} leftSection={<IconFileUpload size={14} aria-hidden />}>
            {runs.edit.schema.file}
          </Button>
        )}
      </FileButton>
    </div>
  );
}
