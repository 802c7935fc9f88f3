import { Alert, Content, Modal, ModalBody, ModalHeader, SearchInput, Title } from '@patternfly/react-core';
import { useId, useMemo, useState } from 'react';

import { useText } from '../text';
import type { Action } from './actions';
import { grouped } from './groups';

interface Props {
  /** The name of the object. */
  of: string;
  actions: Action[];
  /** A task of the environment runs: no action can begin. */
  isBusy: boolean;
  onChoose: (action: Action) => void;
  onClose: () => void;
}

/** All actions of an object that offers many, in groups, with a search. */
export function ActionList({ of, actions, isBusy, onChoose, onClose }: Props) {
  const text = useText();
  const words = text.actions;
  const id = useId();
  const [typed, setTyped] = useState('');
  const groups = useMemo(() => grouped(actions, typed), [actions, typed]);
  const found = groups.flatMap(([, list]) => list);
  return (
    <Modal isOpen variant="large" position="top" aria-labelledby={`${id}-title`} elementToFocus=".burano-action-search input" onClose={onClose}>
      <ModalHeader title={words.of(of)} labelId={`${id}-title`} />
      <ModalBody>
        {isBusy && <Alert variant="info" isInline isPlain title={words.busy} />}
        <SearchInput
          className="burano-action-search"
          aria-label={words.find}
          placeholder={words.find}
          value={typed}
          onChange={(_event, value) => setTyped(value)}
          onClear={() => setTyped('')}
          onSearch={() => found.length === 1 && !isBusy && onChoose(found[0]!)}
        />
        <Content component="small" role="status">
          {words.found(found.length, actions.length)}
        </Content>
        {groups.map(([kind, list]) => (
          <section key={kind} className={`burano-actions burano-actions-${kind}`} aria-labelledby={`${id}-${kind}`}>
            <Title headingLevel="h2" size="md" id={`${id}-${kind}`}>
              {words.kinds[kind]}
            </Title>
            <ul>
              {list.map((action) => (
                <li key={action.id}>
                  <button type="button" disabled={isBusy} aria-describedby={`${id}-${action.id}`} onClick={() => onChoose(action)}>
                    {action.title}
                  </button>
                  <small id={`${id}-${action.id}`}>{action.deprecated ? words.deprecated(action.deprecated) : action.description}</small>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </ModalBody>
    </Modal>
  );
}
