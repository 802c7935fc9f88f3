import { Button, Dropdown, DropdownItem, DropdownList, MenuToggle } from '@patternfly/react-core';
import { EllipsisVIcon } from '@patternfly/react-icons';
import { useState } from 'react';

import { isBusy, nameOf, type EnvironmentDetails, type ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { ActionDialog } from './ActionDialog';
import { ActionList } from './ActionList';
import { actionsNamed, actionsOf, type Action } from './actions';

interface Props {
  environment: EnvironmentDetails;
  object: ObjectModel;
  /** Shows "Actions" instead of three dots. */
  labelled?: boolean;
  /** Offers only the actions with these methods, in this order, for the object of this name. */
  about?: { name: string; methods: string[]; given: Record<string, string> };
}

/** How many actions a menu has room for; more are listed in groups, with a search. */
const most = 8;

/** The actions that an object offers, each behind a dialog. */
export function ActionMenu({ environment, object, labelled = false, about }: Props) {
  const text = useText();
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<Action | null>(null);
  const actions = about ? actionsNamed(object, about.methods) : actionsOf(object);
  if (actions.length === 0) return null;
  const busy = isBusy(environment);
  const name = about?.name ?? nameOf(object);
  const many = actions.length > most;
  const look = { variant: labelled ? ('secondary' as const) : ('plain' as const), 'aria-label': text.actions.of(name), icon: labelled ? undefined : <EllipsisVIcon /> };
  return (
    <>
      {many && (
        <Button {...look} aria-haspopup="dialog" onClick={() => setOpen(true)}>
          {labelled ? text.actions.title : undefined}
        </Button>
      )}
      {many && open && (
        <ActionList
          of={name}
          actions={actions}
          isBusy={busy}
          onChoose={(action) => {
            setOpen(false);
            setChosen(action);
          }}
          onClose={() => setOpen(false)}
        />
      )}
      {!many && (
        <Dropdown
          isOpen={open}
          onOpenChange={setOpen}
          onSelect={() => setOpen(false)}
          popperProps={{ position: 'end' }}
          toggle={(ref) => (
            <MenuToggle
              ref={ref}
              {...look}
              isExpanded={open}
              onClick={() => setOpen(!open)}
            >
              {labelled ? text.actions.title : undefined}
            </MenuToggle>
          )}
        >
          <DropdownList>
            {actions.map((action) => (
              <DropdownItem
                key={action.id}
                description={busy ? text.actions.busy : action.deprecated ? text.actions.deprecated(action.deprecated) : action.description || undefined}
                isDisabled={busy}
                onClick={() => setChosen(action)}
              >
                {action.title}
              </DropdownItem>
            ))}
          </DropdownList>
        </Dropdown>
      )}
      {chosen && <ActionDialog environment={environment.id ?? ''} object={object} action={chosen} given={about?.given} onClose={() => setChosen(null)} />}
    </>
  );
}
