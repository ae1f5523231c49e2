import { Button, Menu } from '@mantine/core';
import { IconColumns3 } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import { COLUMNS, USUAL, type ColumnName } from './columns';

interface Props {
  shown: readonly ColumnName[];
  onChoose: (names: readonly ColumnName[]) => void;
}

export function ColumnMenu({ shown, onChoose }: Props) {
  const { letters: text } = useText();
  return (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target>
        <Button leftSection={<IconColumns3 size={14} aria-hidden />}>{text.chooseColumns}</Button>
      </Menu.Target>
      <Menu.Dropdown>
        {COLUMNS.map((name) => {
          const chosen = shown.includes(name);
          return (
            <Menu.CheckboxItem
              key={name}
              checked={chosen}
              onChange={() => onChoose(chosen ? shown.filter((each) => each !== name) : [...shown, name])}
            >
              {text.columns[name]}
            </Menu.CheckboxItem>
          );
        })}
        <Menu.Divider />
        <Menu.Item onClick={() => onChoose(USUAL)}>{text.usualColumns}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
