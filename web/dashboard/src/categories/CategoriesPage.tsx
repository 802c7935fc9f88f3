import { Button, EmptyState, EmptyStateBody, PageSection, Tooltip } from '@patternfly/react-core';
import { FolderOpenIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { categoriesQuery } from '../catalog/catalog';
import type { Schema } from '../api/client';
import { NameDialog } from '../environments/NameDialog';
import { Confirm } from '../shell/Confirm';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { addCategory, deleteCategory, inOrder } from './categories';

/** The shelves of the catalog. */
export function CategoriesPage() {
  const { text, language } = useLanguage();
  const words = text.categories;
  const client = useQueryClient();
  const categories = useQuery(categoriesQuery);
  const [dialog, setDialog] = useState<'add' | Schema<'Category'> | null>(null);
  const done = () => {
    setDialog(null);
    void client.invalidateQueries({ queryKey: categoriesQuery.queryKey });
  };
  const add = <Button onClick={() => setDialog('add')}>{words.add}</Button>;
  return (
    <>
      <Heading title={words.title} what={words.what} help="catalog">
        {add}
      </Heading>
      <PageSection isFilled>
        <Loaded query={categories}>
          {(list) =>
            list.length === 0 ? (
              <EmptyState titleText={words.none} icon={FolderOpenIcon} headingLevel="h2">
                <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-md">
                <Thead>
                  <Tr>
                    <Th>{words.name}</Th>
                    <Th>{words.count}</Th>
                    <Th screenReaderText={words.actions} />
                  </Tr>
                </Thead>
                <Tbody>
                  {inOrder(list, language).map((one) => (
                    <Tr key={one.id}>
                      <Td dataLabel={words.name} className="burano-breaks">
                        <Link to="/catalog" search={{ category: one.name }}>
                          {one.name}
                        </Link>
                      </Td>
                      <Td dataLabel={words.count}>{one.package_count ?? 0}</Td>
                      <Td isActionCell>
                        <Delete of={one} onClick={() => setDialog(one)} />
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )
          }
        </Loaded>
      </PageSection>
      {dialog === 'add' && <NameDialog title={words.add} action={words.add} send={addCategory} onDone={done} onClose={() => setDialog(null)} />}
      {dialog && dialog !== 'add' && (
        <Confirm
          title={words.deleteTitle(dialog.name ?? '')}
          what={words.deleteWhat}
          action={words.delete}
          send={() => deleteCategory(dialog.id ?? '')}
          onDone={done}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}

function Delete({ of, onClick }: { of: Schema<'Category'>; onClick: () => void }) {
  const words = useLanguage().text.categories;
  const full = (of.package_count ?? 0) > 0;
  const button = (
    <Button variant="link" isDanger isAriaDisabled={full} onClick={onClick} aria-label={words.deleteOne(of.name ?? '')}>
      {words.delete}
    </Button>
  );
  return full ? <Tooltip content={words.full}>{button}</Tooltip> : button;
}
