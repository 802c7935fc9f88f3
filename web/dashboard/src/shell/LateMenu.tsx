import { MenuToggle } from '@patternfly/react-core';
import { Suspense, useState, type ComponentType, type ReactNode } from 'react';

/** The toggle of a menu: its name, and its content. */
export interface Look {
  label: string;
  icon?: ReactNode;
  shown?: ReactNode;
}

/** A menu of the masthead. It is loaded when it is first opened, so that every page is there earlier. */
export function LateMenu({ menu: Menu, ...look }: Look & { menu: ComponentType<Look> }) {
  const [asked, setAsked] = useState(false);
  const toggle = <MenuToggle {...toggleOf(look)} isExpanded={false} onClick={() => setAsked(true)} />;
  return asked ? (
    <Suspense fallback={toggle}>
      <Menu {...look} />
    </Suspense>
  ) : (
    toggle
  );
}

/** How a toggle looks, before and after its menu is loaded. */
export const toggleOf = ({ label, icon, shown }: Look) => ({ variant: shown ? ('plainText' as const) : ('plain' as const), icon, children: shown, 'aria-label': label });
