import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, ExpandableSection, Title } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useContext, type ReactNode } from 'react';

import { shownQuery } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { namesOf } from '../environments/objects';
import { useText } from '../text';
import { cloudQuery } from './cloud';
import { Place, useAskedRegion } from './place';
import { byTopic, differs, isEmpty, textOf, valueOf, visible, type Field, type Step, type Values } from './values';

interface Props {
  steps: Step[];
  name: string;
  values: Values;
  /** Secrets that are set, and are in no value. */
  kept?: { form: string; field: string }[];
}

/** The answers to forms by the labels of their fields; answers as they are suggested are folded. */
export function Answers({ steps, name, values, kept = [] }: Props) {
  const words = useText().wizard;
  const isKept = (form: string, field: Field) => kept.some((one) => one.form === form && one.field === field.name);
  const { environment } = useContext(Place);
  const { draft } = useDraft(environment);
  const names = namesOf(useQuery(shownQuery(environment, draft)).data);
  const region = useAskedRegion();
  const asks = (type: string) => region !== undefined && steps.some((step) => step.form && visible(step.form).some((field) => field.type === type));
  const images = useQuery({ ...cloudQuery('images', region), enabled: asks('image') }).data?.images ?? [];
  const networks = useQuery({ ...cloudQuery('networks', region), enabled: asks('network') }).data?.networks ?? [];
  const show = (field: Field, value: unknown, isKept: boolean): string => {
    if (isKept) return words.isSecret;
    if (isEmpty(value)) return words.isEmpty;
    if (field.secret) return words.isSecret;
    if (typeof value === 'boolean') return value ? words.yes : words.no;
    if (field.type === 'object') return names.get(String(value)) ?? String(value);
    if (field.type === 'choice') return field.choices?.find((choice) => choice.value === value)?.label ?? String(value);
    if (field.type === 'image') {
      const image = images.find((one) => one.id === value);
      return image?.title || image?.name || textOf(value);
    }
    if (field.type === 'network' && Array.isArray(value)) {
      return value[0] === null ? words.auto : networks.find((one) => one.id === value[0])?.name || textOf(value[0]);
    }
    return textOf(value);
  };
  return (
    <>
      {steps.map((step) => {
        const { main, topics } = step.form ? byTopic(step.form) : { main: [], topics: [] };
        const others = topics.flatMap(([, fields]) => fields);
        const form = step.form?.name ?? '';
        const changed = others.filter((field) => differs(values, form, field) || isKept(form, field));
        const suggested = others.filter((field) => !changed.includes(field));
        const entry = (field: Field) => (
          <Entry key={field.name} term={field.label || field.name || words.jsonField} value={show(field, valueOf(values, form, field), isKept(form, field))} />
        );
        return (
          <section key={step.id} className="burano-review">
            <Title headingLevel="h3" size="md">
              {step.title}
            </Title>
            <Entries>
              {step.named && <Entry term={words.name} value={name || words.isEmpty} />}
              {[...main, ...changed].map(entry)}
            </Entries>
            {suggested.length > 0 && (
              <ExpandableSection toggleText={words.suggested(suggested.length)} isIndented>
                <Entries>{suggested.map(entry)}</Entries>
              </ExpandableSection>
            )}
          </section>
        );
      })}
    </>
  );
}

const Entries = ({ children }: { children: ReactNode }) => (
  <DescriptionList isHorizontal isCompact horizontalTermWidthModifier={{ default: '20ch' }}>
    {children}
  </DescriptionList>
);

const Entry = ({ term, value }: { term: string; value: string }) => (
  <DescriptionListGroup>
    <DescriptionListTerm>{term}</DescriptionListTerm>
    <DescriptionListDescription className="burano-breaks">{value}</DescriptionListDescription>
  </DescriptionListGroup>
);
