import { Button } from '@mantine/core';
import { IconMapOff } from '@tabler/icons-react';
import { Link } from 'react-router';
import { useText } from '@/locales/language';
import { EmptyState } from '@/shared/EmptyState';
import { PageHeader } from '@/shared/PageHeader';
import { paths } from './paths';

export function NotFoundPage() {
  const { shell } = useText();
  return (
    <>
      <PageHeader title={shell.notFound.title} />
      <EmptyState
        icon={IconMapOff}
        title={shell.notFound.what}
        action={
          <Button component={Link} to={paths.overview}>
            {shell.notFound.back}
          </Button>
        }
      />
    </>
  );
}
