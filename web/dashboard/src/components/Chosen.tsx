import { ExpandableSection, Title } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, type ReactNode } from 'react';

import { useDraft } from '../draft/useDraft';
import type { ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { Answers } from '../wizard/Answers';
import { Place } from '../wizard/place';
import { stepsOf } from '../wizard/values';
import { todayQuery } from './form';

interface Props {
  environment: string;
  object: ObjectModel;
  /** Whether the object is an application, which may have a form. */
  isApplication: boolean;
  /** All its properties. */
  children: ReactNode;
}

/** The answers to the form of a component, with its properties folded; the properties where there is no form. */
export function Chosen({ environment, object, isApplication, children }: Props) {
  const text = useText();
  const { draft } = useDraft(environment);
  const asked = useQuery({ ...todayQuery(environment, object['?']?.id ?? '', draft), enabled: isApplication });
  const today = asked.data;
  const place = useMemo(() => ({ environment, path: [] }), [environment]);
  if (isApplication && asked.isPending) return null;
  if (!today) return children;
  const known = today.forms.map((form) => ({
    ...form,
    fields: form.fields.filter((field) => !today.unknown.some((one) => one.form === form.name && one.field === field.name)),
  }));
  return (
    <Place.Provider value={place}>
      <Title headingLevel="h2" size="md">
        {text.components.chosen}
      </Title>
      <Answers steps={stepsOf(known, today.named, text.wizard.name)} name={today.name} values={today.values} kept={today.kept} />
      <ExpandableSection toggleText={text.components.allProperties}>{children}</ExpandableSection>
    </Place.Provider>
  );
}
