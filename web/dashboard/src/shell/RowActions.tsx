import { MenuToggle } from '@patternfly/react-core';
import { EllipsisVIcon } from '@patternfly/react-icons';
import { ActionsColumn, type IAction } from '@patternfly/react-table';

import { useText } from '../text';

/** The menu of a row, which names its row for screen readers. */
export function RowActions({ of, items }: { of: string; items: IAction[] }) {
  const text = useText();
  return (
    <ActionsColumn
      items={items}
      actionsToggle={({ onToggle, isOpen, isDisabled, toggleRef }) => (
        <MenuToggle
          ref={toggleRef}
          variant="plain"
          icon={<EllipsisVIcon />}
          aria-label={text.shell.actionsOf(of)}
          onClick={onToggle}
          isExpanded={isOpen}
          isDisabled={isDisabled}
        />
      )}
    />
  );
}
