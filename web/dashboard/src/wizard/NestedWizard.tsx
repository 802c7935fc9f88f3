import { Modal, ModalBody, WizardHeader } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useContext, useId, useMemo, useState } from 'react';

import { packageQuery } from '../catalog/catalog';
import { useDraft } from '../draft/useDraft';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { ApplicationWizard } from './ApplicationWizard';
import { definitionQuery } from './definition';
import { freeName, takenQuery } from './names';
import { Place } from './place';

interface Props {
  package: string;
  /** The field that will refer to the added object. */
  at: string;
  onAdded: (id: string) => void;
  onClose: () => void;
}

/** Adds an application that another one refers to, in a dialog over that one's. */
export function NestedWizard({ package: id, at, onAdded, onClose }: Props) {
  const text = useText();
  const place = useContext(Place);
  const dialog = useId();
  const [step, setStep] = useState(0);
  const definition = useQuery(definitionQuery(id));
  const application = useQuery(packageQuery(id));
  const client = useQueryClient();
  const { user } = useDraft(place.environment);
  const taken = useQuery(takenQuery(client, user, place.environment));
  const inner = useMemo(() => ({ environment: place.environment, path: [...place.path, at.replace(/^.*?-/, '')] }), [place, at]);
  const title = text.wizard.title(application.data?.name ?? '');
  // Every open dialog hears of the key; only the uppermost is closed by it.
  const escape = (event: KeyboardEvent) => {
    const uppermost = [...document.querySelectorAll('[role="dialog"]')].at(-1);
    if (event.defaultPrevented || uppermost?.id !== dialog) return;
    event.preventDefault();
    onClose();
  };
  // A dialog without anything to go to by keyboard cannot be: it opens when there is something.
  if (definition.isPending || application.isPending || taken.isPending) return null;
  if (!definition.data) {
    return (
      <Modal isOpen variant="medium" aria-label={title} onClose={onClose}>
        <ModalBody>
          <Failure error={definition.error} onRetry={() => void definition.refetch()} />
        </ModalBody>
      </Modal>
    );
  }
  return (
    <Modal isOpen id={dialog} variant="large" aria-label={title} onEscapePress={escape}>
      <Place.Provider value={inner}>
        <ApplicationWizard
          definition={definition.data}
          at={step}
          onGo={setStep}
          suggested={freeName(application.data?.name ?? '', taken.data ?? [])}
          action={text.wizard.add}
          header={<WizardHeader title={title} onClose={onClose} closeButtonAriaLabel={text.shell.close} />}
          onAdded={(model) => onAdded(model['?']?.id ?? '')}
          onClose={onClose}
        />
      </Place.Provider>
    </Modal>
  );
}
