import { Alert, Content, Title } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useMemo, useState } from 'react';

import { useDraft } from '../draft/useDraft';
import { Failure } from '../shell/Failure';
import { useAfterPress } from '../shell/press';
import { useText } from '../text';
import { FormStep } from '../wizard/FormStep';
import { Place } from '../wizard/place';
import { errorsIn, stepsOf, unconfirmed, withValue, type FormError, type Values } from '../wizard/values';
import { changedValues, editable, effectOf, labelsOf, type Filled, type Today } from './form';

/** The input of a form, and its mistakes. */
export interface Answered {
  filled: Filled;
  hasChanges: boolean;
  mistakes: FormError[];
}

interface Props {
  environment: string;
  component: string;
  today: Today;
  /** Whether all errors are shown. */
  tried: boolean;
  onChange: (answered: Answered) => void;
  onSubmit: () => void;
}

/** The form that a component was made with: all its steps one below the other. */
export function FormFields({ environment, component, today, tried, onChange, onSubmit }: Props) {
  const text = useText();
  const words = text.components;
  const prefix = useId();
  const { draft } = useDraft(environment);
  const [name, setName] = useState(today.name);
  const [values, setValues] = useState<Values>(today.values);
  const [repeated, setRepeated] = useState<Values>({});
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const afterPress = useAfterPress();
  const filled = useMemo(() => ({ name, values: changedValues(today, values) }), [name, today, values]);
  const hasChanges = name !== today.name || Object.keys(filled.values).length > 0;
  const effect = useQuery({
    queryKey: ['environments', environment, 'effect on', component, filled],
    queryFn: async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, 300)); // typing goes on
      signal.throwIfAborted();
      return effectOf(environment, component, draft, filled, signal);
    },
    enabled: hasChanges,
    placeholderData: (before) => before,
    gcTime: 10_000, // values may hold secrets
  });
  const forms = useMemo(() => editable(effect.data?.forms ?? today.forms, today, words.unchanged), [effect.data, today, words]);
  const steps = useMemo(() => stepsOf(forms, today.named, text.wizard.name), [forms, today.named, text.wizard.name]);
  const mistakes = useMemo(
    () => (hasChanges ? [...(effect.data?.errors ?? []), ...unconfirmed(forms, filled.values, repeated, text.wizard.differ)] : []),
    [hasChanges, effect.data, forms, filled, repeated, text.wizard.differ],
  );
  useEffect(() => onChange({ filled, hasChanges, mistakes }), [onChange, filled, hasChanges, mistakes]);
  const place = useMemo(() => ({ environment, path: [component] }), [environment, component]);
  const elsewhere = mistakes.filter((error) => !steps.some((step) => errorsIn(step, [error]).length > 0));
  return (
    <Place.Provider value={place}>
      {today.unknown.length > 0 && (
        <Alert variant="info" isInline title={words.unknownFields(labelsOf(today.forms, today.unknown).join(', '))}>
          {words.unknownFieldsWhat}
        </Alert>
      )}
      {effect.error && <Failure error={effect.error} onRetry={() => void effect.refetch()} />}
      {elsewhere.map((error) => (
        <Content key={`${error.form}.${error.field}`} component="p" className="burano-log-error">
          {error.message}
        </Content>
      ))}
      {steps.map((step) => (
        <section key={step.id || 'name'} className="burano-review">
          {steps.length > 1 && (
            <Title headingLevel="h2" size="md">
              {step.title}
            </Title>
          )}
          <FormStep
            prefix={prefix}
            step={step}
            state={{ name, values, repeated }}
            errors={mistakes}
            isJudged={(form, field) => tried || left.has(`${form}.${field}`)}
            onName={setName}
            onChange={(form, field, value) => setValues((before) => withValue(before, form, field, value))}
            onRepeat={(form, field, value) => setRepeated((before) => withValue(before, form, field, value))}
            onLeave={(form, field) => afterPress(() => setLeft((before) => new Set([...before, `${form}.${field}`])))}
            onSubmit={onSubmit}
          />
        </section>
      ))}
    </Place.Provider>
  );
}
