import {
  Alert,
  AlertActionLink,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  ExpandableSection,
  Title,
} from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useContext, type ReactNode } from 'react';

import { shownQuery } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import type { ObjectModel } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { useText } from '../text';
import { cloudQuery } from './cloud';
import type { FormState } from './FormStep';
import { Place, useAskedRegion } from './place';
import { QuotaPreview } from './QuotaPreview';
import { byTopic, differs, errorsIn, isEmpty, textOf, valueOf, visible, type Field, type FormError, type Step } from './values';

interface Props {
  steps: Step[];
  state: FormState;
  errors: FormError[];
  model: ObjectModel | null;
  onGo: (step: number) => void;
}

/** The whole input, its errors, and its share of the quota. */
export function ReviewStep({ steps, state, errors, model, onGo }: Props) {
  const words = useText().wizard;
  const { environment } = useContext(Place);
  const { draft } = useDraft(environment);
  const names = namesOf(useQuery(shownQuery(environment, draft)).data);
  const region = useAskedRegion();
  const asks = (type: string) => region !== undefined && steps.some((step) => step.form && visible(step.form).some((field) => field.type === type));
  const images = useQuery({ ...cloudQuery('images', region), enabled: asks('image') }).data?.images ?? [];
  const networks = useQuery({ ...cloudQuery('networks', region), enabled: asks('network') }).data?.networks ?? [];
  const first = steps.findIndex((step) => errorsIn(step, errors).length > 0);
  const show = (field: Field, value: unknown): string => {
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
      {errors.length > 0 && (
        <Alert
          variant="danger"
          isInline
          title={words.wrong}
          actionLinks={first >= 0 && <AlertActionLink onClick={() => onGo(first)}>{words.goTo(steps[first]?.title ?? '')}</AlertActionLink>}
        >
          <Content component="ul">
            {errors.map((error, i) => (
              <Content component="li" key={i} className="burano-breaks">
                {labelOf(steps, error) || error.field || words.wrongWhole}: {error.message}
              </Content>
            ))}
          </Content>
        </Alert>
      )}
      {model && <QuotaPreview model={model} />}
      {steps.map((step) => {
        const { main, topics } = step.form ? byTopic(step.form) : { main: [], topics: [] };
        const others = topics.flatMap(([, fields]) => fields);
        const form = step.form?.name ?? '';
        const changed = others.filter((field) => differs(state.values, form, field));
        const suggested = others.filter((field) => !changed.includes(field));
        const entry = (field: Field) => (
          <Entry key={field.name} term={field.label || field.name || words.jsonField} value={show(field, valueOf(state.values, form, field))} />
        );
        return (
          <section key={step.id} className="burano-review">
            <Title headingLevel="h3" size="md">
              {step.title}
            </Title>
            <Entries>
              {step.named && <Entry term={words.name} value={state.name || words.isEmpty} />}
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

function labelOf(steps: Step[], error: FormError): string {
  const form = steps.find((step) => step.form?.name === error.form)?.form;
  return form?.fields.find((field) => field.name === error.field)?.label ?? '';
}
