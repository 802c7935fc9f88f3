import { Button, ToolbarItem } from '@patternfly/react-core';
import { OutlinedQuestionCircleIcon, SearchIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useState } from 'react';

import { environmentsQuery } from '../environments/environments';
import { LateMenu, type Look } from '../shell/LateMenu';
import { useFirstText } from '../text';
import { shortcut } from './shortcut';

const Help = lazy(() => import('../shell/Menus').then(({ Help }) => ({ default: Help })));
const Palette = lazy(() => import('./Palette').then(({ Palette }) => ({ default: Palette })));
const AboutDialog = lazy(() => import('../about/AboutDialog').then(({ AboutDialog }) => ({ default: AboutDialog })));
const KeyboardDialog = lazy(() => import('../about/KeyboardDialog').then(({ KeyboardDialog }) => ({ default: KeyboardDialog })));
const CreateDialog = lazy(() => import('../environments/CreateDialog').then(({ CreateDialog }) => ({ default: CreateDialog })));

/** The palette and the help of the masthead, with the keys that open them. */
export function Commands() {
  const words = useFirstText().shell;
  const navigate = useNavigate();
  const client = useQueryClient();
  const [dialog, setDialog] = useState<'palette' | 'about' | 'keyboard' | 'create' | null>(null);
  const close = () => setDialog(null);
  const help = useCallback((look: Look) => <Help {...look} onShow={setDialog} />, []);
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
        <Button variant="plain" icon={<SearchIcon />} aria-label={words.search} title={words.search} onClick={() => setDialog('palette')} />
      </ToolbarItem>
      <ToolbarItem>
        <LateMenu menu={help} label={words.help} icon={<OutlinedQuestionCircleIcon />} />
      </ToolbarItem>
      <Suspense>
        {dialog === 'palette' && (
          <Palette onCreate={() => setDialog('create')} onKeyboard={() => setDialog('keyboard')} onAbout={() => setDialog('about')} onClose={close} />
        )}
        {dialog === 'about' && <AboutDialog onClose={close} />}
        {dialog === 'keyboard' && <KeyboardDialog onClose={close} />}
        {dialog === 'create' && (
          <CreateDialog
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
