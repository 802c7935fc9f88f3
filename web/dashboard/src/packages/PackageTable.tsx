import { Content, Switch } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr, type TdProps, type ThProps } from '@patternfly/react-table';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';

import { showAge, showTime } from '../api/time';
import type { Package } from '../catalog/catalog';
import { ChoiceCell, ChoiceOfAll } from '../shell/Choice';
import { RowActions } from '../shell/RowActions';
import { useLanguage } from '../text';
import type { Look } from './look';
import { changePackage, downloadOf } from './packages';

interface Props {
  packages: Package[];
  look: Look;
  onLook: (next: Partial<Look>) => void;
  chosen: Package[];
  onChoose: (chosen: Package[]) => void;
  onEdit: (of: Package) => void;
  onDelete: (of: Package) => void;
  onChanged: () => void;
  onRefused: (error: Error) => void;
}

/** The columns' sort keys, if the server sorts by them. */
const sortable = ['name', 'created'] as const;

/** Columns that are shown on wide pages only. */
const roomy: TdProps['visibility'] = ['hidden', 'visibleOn2Xl'];

export function PackageTable({ packages, look, onLook, chosen, onChoose, ...row }: Props) {
  const words = useLanguage().text.packages;
  const sort = (order: (typeof sortable)[number]): ThProps['sort'] => ({
    sortBy: { index: sortable.findIndex((one) => one === (look.order ?? 'name')), direction: look.descending ? 'desc' : 'asc' },
    onSort: (_event, at, direction) => onLook({ order: sortable[at], descending: direction === 'desc' || undefined }),
    columnIndex: sortable.indexOf(order),
  });
  const isChosen = (item: Package) => chosen.some((one) => one.id === item.id);
  return (
    <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-xl">
      <Thead>
        <Tr>
          <ChoiceOfAll label={words.choose} isChosen={packages.every(isChosen)} onChoose={(all) => onChoose(all ? packages : [])} />
          <Th sort={sort('name')} width={25}>{words.name}</Th>
          <Th>{words.type}</Th>
          <Th modifier="fitContent">{words.active}</Th>
          <Th modifier="fitContent">{words.public}</Th>
          <Th width={20}>{words.author}</Th>
          <Th sort={sort('created')} modifier="nowrap">{words.created}</Th>
          <Th visibility={roomy}>{words.updated}</Th>
          <Th screenReaderText={words.actions} />
        </Tr>
      </Thead>
      <Tbody>
        {packages.map((item) => (
          <Row
            key={item.id}
            item={item}
            isChosen={isChosen(item)}
            onChoose={(yes) => onChoose(yes ? [...chosen, item] : chosen.filter((one) => one.id !== item.id))}
            {...row}
          />
        ))}
      </Tbody>
    </Table>
  );
}

interface RowProps extends Pick<Props, 'onEdit' | 'onDelete' | 'onChanged' | 'onRefused'> {
  item: Package;
  isChosen: boolean;
  onChoose: (yes: boolean) => void;
}

function Row({ item, isChosen, onChoose, onEdit, onDelete, onChanged, onRefused }: RowProps) {
  const { text, language } = useLanguage();
  const words = text.packages;
  const navigate = useNavigate();
  const change = useMutation({
    mutationFn: (next: { enabled?: boolean; is_public?: boolean }) => changePackage(item, { ...item, ...next }),
    onSuccess: onChanged,
    onError: onRefused,
  });
  return (
    <Tr>
      <ChoiceCell label={words.chooseOne(item.name ?? '')} isChosen={isChosen} onChoose={onChoose} />
      <Td dataLabel={words.name} className="burano-breaks">
        {item.name}
        <Content component="small">{item.fully_qualified_name}</Content>
      </Td>
      <Td dataLabel={words.type}>{item.type && words.types[item.type]}</Td>
      <Td dataLabel={words.active}>
        <Switch
          aria-label={words.activeOf(item.name ?? '')}
          isChecked={item.enabled ?? false}
          isDisabled={change.isPending}
          onChange={(_event, enabled) => change.mutate({ enabled })}
        />
      </Td>
      <Td dataLabel={words.public}>
        <Switch
          aria-label={words.publicOf(item.name ?? '')}
          isChecked={item.is_public ?? false}
          isDisabled={change.isPending}
          onChange={(_event, is_public) => change.mutate({ is_public })}
        />
      </Td>
      <Td dataLabel={words.author} className="burano-breaks">
        {item.author}
      </Td>
      <Td dataLabel={words.created} modifier="nowrap" title={showTime(item.created, language)}>
        {showAge(item.created, language)}
      </Td>
      <Td dataLabel={words.updated} visibility={roomy} modifier="nowrap" title={showTime(item.updated, language)}>
        {showAge(item.updated, language)}
      </Td>
      <Td isActionCell>
        <RowActions
          of={item.name ?? ''}
          items={[
            { title: words.edit, onClick: () => onEdit(item) },
            { title: words.download, to: downloadOf(item), download: `${item.fully_qualified_name}.zip` },
            { title: words.sameName, onClick: () => void navigate({ to: '/packages/compare', search: { fqn: item.fully_qualified_name } }) },
            { isSeparator: true },
            { title: words.delete, onClick: () => onDelete(item) },
          ]}
        />
      </Td>
    </Tr>
  );
}
