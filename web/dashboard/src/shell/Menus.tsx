import { Dropdown, DropdownGroup, DropdownItem, DropdownList, MenuToggle, type DropdownProps, type MenuToggleElement } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState, type ReactNode } from 'react';

import { chooseRegion, kept, nameOfRegion, useRegion } from '../regions/regions';
import { chooseProject, readProjects, signOut, useSession } from '../session/session';
import { languageNames, useFirstLanguage, useFirstText, useText, type Language } from '../text';
import { toggleOf, type Look } from './LateMenu';
import { useTheme, type Theme } from './theme';

interface Openable {
  look: Look;
  isOpen: boolean;
  onOpen: (open: boolean) => void;
  onSelect?: DropdownProps['onSelect'];
  children: ReactNode;
}

/** A menu that begins open, with the focus on its toggle: it takes the place of the toggle that was pressed. */
function Opened({ look, isOpen, onOpen, onSelect, children }: Openable) {
  const [toggle, setToggle] = useState<MenuToggleElement | null>(null);
  const placed = useMemo(() => ({ current: toggle as HTMLButtonElement | null }), [toggle]);
  useEffect(() => toggle?.focus(), [toggle]);
  // The toggle is elsewhere in a window of another size, where the menu does not follow it.
  useEffect(() => {
    if (!isOpen) return;
    const close = () => onOpen(false);
    window.addEventListener('resize', close);
    return () => window.removeEventListener('resize', close);
  }, [isOpen, onOpen]);
  return (
    <Dropdown
      isOpen={isOpen && toggle !== null} // without its toggle it would open in the corner of the window
      onOpenChange={onOpen}
      onSelect={onSelect}
      popperProps={{ position: 'end' }}
      toggle={{ toggleRef: placed, toggleNode: <MenuToggle ref={setToggle} {...toggleOf(look)} isExpanded={isOpen} onClick={() => onOpen(!isOpen)} /> }}
    >
      {children}
    </Dropdown>
  );
}

/** The projects to work in. */
export function Projects(look: Look) {
  const text = useFirstText();
  const session = useSession();
  const [open, setOpen] = useState(true);
  const projects = useQuery({ queryKey: ['projects'], queryFn: readProjects, enabled: open });
  // All shown data belong to the project: a whole new page is the one safe method to drop them.
  const choose = (id: string) => chooseProject(id).then(() => window.location.assign('/dashboard/'));
  return (
    <Opened look={look} isOpen={open} onOpen={setOpen} onSelect={(_event, id) => void choose(String(id))}>
      <DropdownList>
        {projects.isPending && <DropdownItem isDisabled>{text.shell.loading}</DropdownItem>}
        {(projects.data ?? []).map((project) => (
          <DropdownItem key={project.id} value={project.id} isSelected={project.id === session.project?.id}>
            {project.name}
          </DropdownItem>
        ))}
      </DropdownList>
    </Opened>
  );
}

/** The regions to work in. */
export function Regions(look: Look) {
  const [open, setOpen] = useState(true);
  const { regions, region } = useRegion();
  return (
    <Opened look={look} isOpen={open} onOpen={setOpen} onSelect={(_event, name) => chooseRegion(kept(regions, String(name)))}>
      <DropdownList>
        {regions.map(({ name }) => (
          <DropdownItem key={name} value={name} isSelected={name === nameOfRegion(regions, region)}>
            {name}
          </DropdownItem>
        ))}
      </DropdownList>
    </Opened>
  );
}

/** Appearance, language, and the end of the sign-in. */
export function Account(look: Look) {
  const { text, language, choose } = useFirstLanguage();
  const { theme, choose: chooseTheme } = useTheme();
  const client = useQueryClient();
  const [open, setOpen] = useState(true);
  const themes: [Theme, string][] = [
    ['light', text.shell.light],
    ['dark', text.shell.dark],
    ['system', text.shell.system],
  ];
  const leave = async () => {
    await signOut();
    client.clear();
    window.location.assign('/dashboard/');
  };
  return (
    <Opened look={look} isOpen={open} onOpen={setOpen}>
      <DropdownGroup label={text.shell.theme}>
        <DropdownList>
          {themes.map(([value, name]) => (
            <DropdownItem key={value} isSelected={theme === value} onClick={() => chooseTheme(value)}>
              {name}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <DropdownGroup label={text.shell.language}>
        <DropdownList>
          {(Object.keys(languageNames) as Language[]).map((value) => (
            <DropdownItem key={value} isSelected={language === value} onClick={() => choose(value)}>
              {languageNames[value]}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <DropdownList>
        <DropdownItem key="out" onClick={() => void leave()}>
          {text.shell.signOut}
        </DropdownItem>
      </DropdownList>
    </Opened>
  );
}

/** Documents, keys, and information about this program. */
export function Help({ onShow, ...look }: Look & { onShow: (dialog: 'keyboard' | 'about') => void }) {
  const text = useText();
  const navigate = useNavigate();
  const [open, setOpen] = useState(true);
  return (
    <Opened look={look} isOpen={open} onOpen={setOpen} onSelect={() => setOpen(false)}>
      <DropdownList>
        <DropdownItem onClick={() => void navigate({ to: '/help/$page', params: { page: 'README' } })}>{text.help.pages}</DropdownItem>
        <DropdownItem onClick={() => onShow('keyboard')}>{text.palette.keyboard}</DropdownItem>
        <DropdownItem onClick={() => onShow('about')}>{text.palette.about}</DropdownItem>
      </DropdownList>
    </Opened>
  );
}
