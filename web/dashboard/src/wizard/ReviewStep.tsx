import {
  Alert,
  AlertActionLink,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Title,
} from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useContext } from 'react';

import { shownQuery } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import type { ObjectModel } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { useText } from '../text';
import type { FormState } from './FormStep';
import { Place } from './place';
import { QuotaPreview } from './QuotaPreview';
import { errorsIn, isEmpty, textOf, valueOf, visible, type Field, type FormError, type Step } from './values';

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
  const first = steps.findIndex((step) => errorsIn(step, errors).length > 0);
  const show = (field: Field, value: unknown): string => {
    if (isEmpty(value)) return words.isEmpty;
    if (field.secret) return words.isSecret;
    if (typeof value === 'boolean') return value ? words.yes : words.no;
    if (field.type === 'object') return names.get(String(value)) ?? String(value);
    if (field.type === 'choice') return field.choices?.find((choice) => choice.value === value)?.label ?? String(value);
    if (field.type === 'network' && Array.isArray(value)) return value[0] === null ? words.auto : textOf(value[0]);
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
      {steps.map((step) => (
        <section key={step.id} className="burano-review">
          <Title headingLevel="h3" size="md">
            {step.title}
          </Title>
          <DescriptionList isHorizontal isCompact horizontalTermWidthModifier={{ default: '20ch' }}>
            {step.named && (
              <DescriptionListGroup>
                <DescriptionListTerm>{words.name}</DescriptionListTerm>
                <DescriptionListDescription className="burano-breaks">{state.name || words.isEmpty}</DescriptionListDescription>
              </DescriptionListGroup>
            )}
            {step.form &&
              visible(step.form).map((field) => (
                <DescriptionListGroup key={field.name}>
                  <DescriptionListTerm>{field.label || field.name || words.jsonField}</DescriptionListTerm>
                  <DescriptionListDescription className="burano-breaks">
                    {show(field, valueOf(state.values, step.form?.name ?? '', field))}
                  </DescriptionListDescription>
                </DescriptionListGroup>
              ))}
          </DescriptionList>
        </section>
      ))}
    </>
  );
}

function labelOf(steps: Step[], error: FormError): string {
  const form = steps.find((step) => step.form?.name === error.form)?.form;
  return form?.fields.find((field) => field.name === error.field)?.label ?? '';
}
