import { Button, Menu } from '@mantine/core';
import { IconAdjustmentsHorizontal, IconCopy } from '@tabler/icons-react';
import { useState } from 'react';
import { serverAddress } from '@/api/page';
import { useText } from '@/locales/language';
import { keep, kept } from '@/shared/kept';
import { ColumnMenu } from './ColumnMenu';
import type { useColumns } from './columns';
import { lettersByCommand, lettersByCurl } from './commands';
import { DownloadMenu } from './DownloadMenu';
import { useCopy } from './useCopy';

const KEPT_AS = 'redrive.letters.facets';

/** Whether facets are shown: as they were left, else where there is room for them. */
export function useFacetsShown() {
  const [shown, setShown] = useState(() => {
    const left = kept(KEPT_AS);
    return left === null ? window.matchMedia('(min-width: 1100px)').matches : left === 'on';
  });
  const toggle = () => {
    keep(KEPT_AS, shown ? 'off' : 'on');
    setShown(!shown);
  };
  return { shown, toggle };
}

interface Props {
  filter: string;
  columns: ReturnType<typeof useColumns>;
  facets: ReturnType<typeof useFacetsShown>;
}

export function ListTools({ filter, columns, facets }: Props) {
  const { letters: text } = useText();
  const copy = useCopy();
  return (
    <>
      <Button aria-pressed={facets.shown} leftSection={<IconAdjustmentsHorizontal size={14} aria-hidden />} onClick={facets.toggle}>
        {text.facets.show}
      </Button>
      <ColumnMenu shown={columns.shown} onChoose={columns.choose} />
      <Menu position="bottom-end">
        <Menu.Target>
          <Button leftSection={<IconCopy size={14} aria-hidden />}>{text.copyAs.menu}</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => copy(lettersByCurl(serverAddress(), filter))}>{text.copyAs.curl}</Menu.Item>
          <Menu.Item onClick={() => copy(lettersByCommand(filter))}>{text.copyAs.command}</Menu.Item>
          <Menu.Item onClick={() => copy(window.location.href)}>{text.copyAs.link}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <DownloadMenu chosen={{ query: filter }} />
    </>
  );
}
