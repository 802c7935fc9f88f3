import { Menu, MenuContent, MenuItem, MenuList, Modal, ModalBody, ModalHeader, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState, type KeyboardEvent } from 'react';

import { environmentsQuery } from '../environments/environments';
import { useSession } from '../session/session';
import { groups, mayOpen } from '../shell/pages';
import { useTheme } from '../shell/theme';
import { useText } from '../text';
import { fitting, foundQuery, type Entry } from './palette';

interface Props {
  onCreate: () => void;
  onKeyboard: () => void;
  onAbout: () => void;
  onClose: () => void;
}

/** Finds pages, environments, applications and commands by typing. */
export function Palette({ onCreate, onKeyboard, onAbout, onClose }: Props) {
  const text = useText();
  const words = text.palette;
  const id = useId();
  const navigate = useNavigate();
  const session = useSession();
  const { choose } = useTheme();
  const [typed, setTyped] = useState('');
  const [active, setActive] = useState(0);
  const environments = useQuery(environmentsQuery);
  const found = useQuery(foundQuery(typed));

  const own: Entry[] = [
    ...groups.flatMap((group) => group.pages.filter((page) => mayOpen(page, session)).map((page) => ({ id: page.to, name: page.name(text), kind: words.page, run: () => void navigate({ to: page.to }) }))),
    { id: 'help', name: text.help.title, kind: words.page, run: () => void navigate({ to: '/help/$page', params: { page: 'README' } }) },
    { id: 'create', name: text.environments.create, kind: words.action, run: onCreate },
    { id: 'light', name: words.theme(text.shell.light), kind: words.action, run: () => choose('light') },
    { id: 'dark', name: words.theme(text.shell.dark), kind: words.action, run: () => choose('dark') },
    { id: 'keyboard', name: words.keyboard, kind: words.action, run: onKeyboard },
    { id: 'about', name: words.about, kind: words.action, run: onAbout },
    ...(environments.data ?? []).map((one) => ({
      id: `environment-${one.id}`,
      name: one.name ?? '',
      kind: words.environment,
      run: () => void navigate({ to: '/environments/$environment', params: { environment: one.id ?? '' } }),
    })),
  ];
  const applications: Entry[] = (found.data ?? []).map((one) => ({
    id: `package-${one.id}`,
    name: one.name ?? '',
    kind: words.application,
    run: () => void navigate({ to: '/catalog/$package', params: { package: one.id ?? '' } }),
  }));
  const shown = [...fitting(own, typed), ...(typed.trim().length > 1 ? applications : [])];
  const at = Math.min(active, shown.length - 1);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && shown.length > 0) {
      event.preventDefault();
      const next = (at + step + shown.length) % shown.length;
      setActive(next);
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') {
      event.preventDefault();
      take(shown[at]);
    }
  };
  return (
    <Modal isOpen variant="small" position="top" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.title} labelId={`${id}-title`} />
      <ModalBody>
        <TextInput
          aria-label={words.placeholder}
          placeholder={words.placeholder}
          value={typed}
          onChange={(_event, value) => {
            setTyped(value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
          role="combobox"
          aria-expanded
          aria-controls={`${id}-list`}
          aria-activedescendant={shown.length > 0 ? `${id}-${at}` : undefined}
          autoComplete="off"
          autoFocus
        />
        <Menu isPlain isScrollable role="listbox">
          <MenuContent>
            <MenuList id={`${id}-list`} aria-label={words.title}>
              {shown.map((entry, i) => (
                <MenuItem key={entry.id} id={`${id}-${i}`} itemId={entry.id} description={entry.kind} isFocused={i === at} onClick={() => take(entry)}>
                  <span className="burano-breaks">{entry.name}</span>
                </MenuItem>
              ))}
            </MenuList>
          </MenuContent>
        </Menu>
        <p role="status">{shown.length === 0 && words.nothing}</p>
      </ModalBody>
    </Modal>
  );
}
