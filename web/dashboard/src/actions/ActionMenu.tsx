import { Dropdown, DropdownItem, DropdownList, MenuToggle } from '@patternfly/react-core';
import { EllipsisVIcon } from '@patternfly/react-icons';
import { useState } from 'react';

import { isBusy, nameOf, type EnvironmentDetails, type ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { ActionDialog } from './ActionDialog';
import { actionsNamed, actionsOf, type Action } from './actions';

interface Props {
  environment: EnvironmentDetails;
  object: ObjectModel;
  /** Shows "Actions" instead of three dots. */
  labelled?: boolean;
  /** Offers only the actions with these methods, in this order, for the object of this name. */
  about?: { name: string; methods: string[]; given: Record<string, string> };
}

/** The actions that an object offers, each behind a dialog. */
export function ActionMenu({ environment, object, labelled = false, about }: Props) {
  const text = useText();
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<Action | null>(null);
  const actions = about ? actionsNamed(object, about.methods) : actionsOf(object);
  if (actions.length === 0) return null;
  const busy = isBusy(environment);
  return (
    <>
      <Dropdown
        isOpen={open}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        popperProps={{ position: 'end' }}
        toggle={(ref) => (
          <MenuToggle
            ref={ref}
            variant={labelled ? 'secondary' : 'plain'}
            isExpanded={open}
            onClick={() => setOpen(!open)}
            aria-label={text.actions.of(about?.name ?? nameOf(object))}
            icon={labelled ? undefined : <EllipsisVIcon />}
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
      {chosen && <ActionDialog environment={environment.id ?? ''} object={object} action={chosen} given={about?.given} onClose={() => setChosen(null)} />}
    </>
  );
}
