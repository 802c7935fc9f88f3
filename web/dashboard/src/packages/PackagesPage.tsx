import {
  Alert,
  AlertActionCloseButton,
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  FormSelect,
  FormSelectOption,
  PageSection,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from '@patternfly/react-core';
import { CubesIcon, SearchIcon } from '@patternfly/react-icons';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import type { Package } from '../catalog/catalog';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { Pager } from '../shell/Pager';
import { useText } from '../text';
import { EditDialog } from './EditDialog';
import { sizes, types, type Look } from './look';
import { deletePackages, packagesKey, packagesQuery } from './packages';
import { PackageTable } from './PackageTable';
import { UploadDialog } from './UploadDialog';

type Dialog = { kind: 'upload' } | { kind: 'edit'; of: Package } | { kind: 'delete'; of: Package[] };

/** All packages that the caller may see, for maintenance. The search is part of the address. */
export function PackagesPage() {
  const words = useText().packages;
  const navigate = useNavigate();
  const client = useQueryClient();
  const look = useSearch({ from: '/packages' });
  const packages = useQuery(packagesQuery(look));
  const [chosen, setChosen] = useState<Package[]>([]);
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const [imported, setImported] = useState<Package[]>([]);
  const [refused, setRefused] = useState<Error | null>(null);

  const turn = (next: Partial<Look>) => void navigate({ to: '.', search: { ...look, after: undefined, ...next }, replace: !('after' in next) });
  const renew = () => void client.invalidateQueries({ queryKey: packagesKey });
  const done = () => {
    setDialog(null);
    setChosen([]);
    renew();
  };
  const upload = <Button onClick={() => setDialog({ kind: 'upload' })}>{words.upload}</Button>;
  const looking = Boolean(look.search || look.type || look.owned || look.after);

  return (
    <>
      <Heading title={words.title} what={words.what} help="catalog">
        {upload}
      </Heading>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput
                aria-label={words.search}
                placeholder={words.search}
                value={look.search ?? ''}
                onChange={(_event, value) => turn({ search: value || undefined })}
                onClear={() => turn({ search: undefined })}
              />
            </ToolbarItem>
            <ToolbarItem>
              <FormSelect aria-label={words.type} value={look.type ?? ''} onChange={(_event, value) => turn({ type: types.find((type) => type === value) })}>
                <FormSelectOption value="" label={words.allTypes} />
                {types.map((type) => (
                  <FormSelectOption key={type} value={type} label={words.types[type]} />
                ))}
              </FormSelect>
            </ToolbarItem>
            <ToolbarItem>
              <FormSelect aria-label={words.whose} value={look.owned ? 'own' : ''} onChange={(_event, value) => turn({ owned: value === 'own' || undefined })}>
                <FormSelectOption value="" label={words.allProjects} />
                <FormSelectOption value="own" label={words.ownProject} />
              </FormSelect>
            </ToolbarItem>
            <ToolbarItem>
              <Button
                variant="secondary"
                isDisabled={chosen.length < 2}
                onClick={() => void navigate({ to: '/packages/compare', search: { ids: chosen.map((item) => item.id ?? '').join(',') } })}
              >
                {words.compare}
              </Button>
            </ToolbarItem>
            <ToolbarItem>
              <Button variant="danger" isDisabled={chosen.length === 0} onClick={() => setDialog({ kind: 'delete', of: chosen })}>
                {words.deleteChosen(chosen.length)}
              </Button>
            </ToolbarItem>
            <ToolbarGroup align={{ default: 'alignEnd' }}>
              <FormSelect aria-label={words.perPage} value={look.limit ?? sizes[0]} onChange={(_event, value) => turn({ limit: sizes.find((size) => size === Number(value)) })}>
                {sizes.map((size) => (
                  <FormSelectOption key={size} value={size} label={words.ofPage(size)} />
                ))}
              </FormSelect>
              <Pager trail={look.after} next={packages.data?.next_marker} onTurn={(after) => turn({ after })} />
            </ToolbarGroup>
          </ToolbarContent>
        </Toolbar>
        {imported.length > 0 && <Imported packages={imported} onClose={() => setImported([])} />}
        {refused && <Failure error={refused} />}
        <Loaded query={packages}>
          {({ packages: list = [] }) =>
            list.length > 0 ? (
              <PackageTable
                packages={list}
                look={look}
                onLook={turn}
                chosen={chosen}
                onChoose={setChosen}
                onEdit={(of) => setDialog({ kind: 'edit', of })}
                onDelete={(of) => setDialog({ kind: 'delete', of: [of] })}
                onChanged={() => {
                  setRefused(null);
                  renew();
                }}
                onRefused={setRefused}
              />
            ) : looking ? (
              <EmptyState titleText={words.noMatch} icon={SearchIcon} headingLevel="h2" variant="sm">
                <Button variant="link" onClick={() => turn({ search: undefined, type: undefined, owned: undefined })}>
                  {words.clear}
                </Button>
              </EmptyState>
            ) : (
              <EmptyState titleText={words.none} icon={CubesIcon} headingLevel="h2">
                <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
                <EmptyStateFooter>
                  <EmptyStateActions>{upload}</EmptyStateActions>
                </EmptyStateFooter>
              </EmptyState>
            )
          }
        </Loaded>
      </PageSection>
      {dialog?.kind === 'upload' && (
        <UploadDialog
          onUploaded={(made) => {
            setImported(made);
            renew();
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog?.kind === 'edit' && <EditDialog of={dialog.of} onDone={done} onClose={() => setDialog(null)} />}
      {dialog?.kind === 'delete' && (
        <Confirm
          title={dialog.of.length === 1 ? words.deleteTitle(dialog.of[0]?.name ?? '') : words.deleteSeveral(dialog.of.length)}
          what={words.deleteWhat(dialog.of.map((item) => item.name).join(', '))}
          action={words.delete}
          send={() => deletePackages(dialog.of).finally(renew)}
          onDone={done}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}

/** Lists the imported packages, which may be anywhere in a long list. */
function Imported({ packages, onClose }: { packages: Package[]; onClose: () => void }) {
  const text = useText();
  const words = text.packages;
  const [only] = packages;
  return (
    <Alert
      isInline
      variant="success"
      title={words.imported(packages.map((one) => one.name).join(', '))}
      actionClose={<AlertActionCloseButton aria-label={text.shell.close} onClose={onClose} />}
      actionLinks={
        packages.length === 1 &&
        only?.type === 'Application' && (
          <Link to="/catalog/$package" params={{ package: only.id ?? '' }}>
            {words.showImported}
          </Link>
        )
      }
    />
  );
}
