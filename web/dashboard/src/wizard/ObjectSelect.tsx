import { Button, Dropdown, DropdownItem, DropdownList, Flex, FlexItem, HelperText, HelperTextItem, MenuToggle } from '@patternfly/react-core';
import { PlusIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { useContext, useState } from 'react';

import { useDraft } from '../draft/useDraft';
import { useText } from '../text';
import type { InputProps } from './input';
import { labelOf, objectsQuery, providersQuery } from './objects';
import { NestedWizard } from './NestedWizard';
import { Place } from './place';
import { Select } from './Select';

/** Chooses an object of the draft, or adds an application that is one. */
export function ObjectSelect(props: InputProps) {
  const { field, id } = props;
  const words = useText().wizard;
  const { environment } = useContext(Place);
  const { draft, isPending } = useDraft(environment);
  const classes = field.classes ?? [];
  const session = draft?.state === 'opened' ? draft.session : undefined;
  const objects = useQuery({ ...objectsQuery(environment, session, classes), enabled: !isPending });
  const asked = useQuery(providersQuery(classes));
  const providers = asked.data ?? [];
  const [open, setOpen] = useState(false);
  const [adding, setAdding] = useState('');
  const options = (objects.data ?? []).map((object) => ({ value: object.id, label: labelOf(object) }));
  const message = options.length === 0 && providers.length > 0 ? words.noObject : undefined;
  return (
    <>
      <Flex alignItems={{ default: 'alignItemsFlexStart' }} flexWrap={{ default: 'nowrap' }} columnGap={{ default: 'columnGapSm' }}>
        <FlexItem grow={{ default: 'grow' }}>
          <Select {...props} field={{ ...field, empty_message: field.empty_message || message }} options={options} isLoading={!objects.data} />
        </FlexItem>
        <FlexItem>
          {providers.length === 1 && (
            <Button variant="secondary" icon={<PlusIcon />} aria-label={words.addObject(field.label ?? '')} onClick={() => setAdding(providers[0]?.id ?? '')}>
              {words.addOne}
            </Button>
          )}
          {providers.length > 1 && (
            <Dropdown
              isOpen={open}
              onOpenChange={setOpen}
              onSelect={(_event, value) => {
                setOpen(false);
                setAdding(String(value));
              }}
              toggle={(ref) => (
                <MenuToggle ref={ref} icon={<PlusIcon />} isExpanded={open} onClick={() => setOpen(!open)} aria-label={words.addObject(field.label ?? '')}>
                  {words.addOne}
                </MenuToggle>
              )}
            >
              <DropdownList>
                {providers.map((one) => (
                  <DropdownItem key={one.id} value={one.id} description={one.fully_qualified_name}>
                    {one.name}
                  </DropdownItem>
                ))}
              </DropdownList>
            </Dropdown>
          )}
        </FlexItem>
      </Flex>
      {asked.data && providers.length === 0 && (
        <HelperText>
          <HelperTextItem>{words.noProvider(classes.join(', '))}</HelperTextItem>
        </HelperText>
      )}
      {adding && (
        <NestedWizard
          package={adding}
          at={id}
          onAdded={(object) => {
            setAdding('');
            props.onChange(object);
          }}
          onClose={() => setAdding('')}
        />
      )}
    </>
  );
}
