import { Button, Dropdown, DropdownItem, DropdownList, MenuToggle, ToolbarItem } from '@patternfly/react-core';
import { OutlinedQuestionCircleIcon, SearchIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';

import { createEnvironment, environmentsQuery } from '../environments/environments';
import { useText } from '../text';
import { shortcut } from './shortcut';

const Palette = lazy(() => import('./Palette').then(({ Palette }) => ({ default: Palette })));
const AboutDialog = lazy(() => import('../about/AboutDialog').then(({ AboutDialog }) => ({ default: AboutDialog })));
const KeyboardDialog = lazy(() => import('../about/KeyboardDialog').then(({ KeyboardDialog }) => ({ default: KeyboardDialog })));
const NameDialog = lazy(() => import('../environments/NameDialog').then(({ NameDialog }) => ({ default: NameDialog<Awaited<ReturnType<typeof createEnvironment>>> })));

/** The palette and the help of the masthead, with the keys that open them. */
export function Commands() {
  const text = useText();
  const words = text.palette;
  const navigate = useNavigate();
  const client = useQueryClient();
  const [menu, setMenu] = useState(false);
  const [dialog, setDialog] = useState<'palette' | 'about' | 'keyboard' | 'create' | null>(null);
  const close = () => setDialog(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const wanted = shortcut(event, event.target as Element | null);
      if (!wanted) return;
      event.preventDefault();
      setDialog(wanted);
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
  return (
    <>
      <ToolbarItem>
        <Button variant="plain" icon={<SearchIcon />} aria-label={words.open} title={words.open} onClick={() => setDialog('palette')} />
      </ToolbarItem>
      <ToolbarItem>
        <Dropdown
          isOpen={menu}
          onOpenChange={setMenu}
          onSelect={() => setMenu(false)}
          popperProps={{ position: 'end' }}
          toggle={(ref) => (
            <MenuToggle ref={ref} variant="plain" icon={<OutlinedQuestionCircleIcon />} isExpanded={menu} onClick={() => setMenu(!menu)} aria-label={text.help.title} />
          )}
        >
          <DropdownList>
            <DropdownItem onClick={() => void navigate({ to: '/help/$page', params: { page: 'catalog' } })}>{text.help.pages}</DropdownItem>
            <DropdownItem onClick={() => setDialog('keyboard')}>{words.keyboard}</DropdownItem>
            <DropdownItem onClick={() => setDialog('about')}>{words.about}</DropdownItem>
          </DropdownList>
        </Dropdown>
      </ToolbarItem>
      <Suspense>
        {dialog === 'palette' && (
          <Palette onCreate={() => setDialog('create')} onKeyboard={() => setDialog('keyboard')} onAbout={() => setDialog('about')} onClose={close} />
        )}
        {dialog === 'about' && <AboutDialog onClose={close} />}
        {dialog === 'keyboard' && <KeyboardDialog onClose={close} />}
        {dialog === 'create' && (
          <NameDialog
            title={text.environments.create}
            action={text.environments.create}
            send={createEnvironment}
            onDone={(made) => {
              close();
              void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
              void navigate({ to: '/environments/$environment', params: { environment: made.id ?? '' } });
            }}
            onClose={close}
          />
        )}
      </Suspense>
    </>
  );
}
