import { ActionList, ActionListGroup, ActionListItem, Button, Wizard, WizardFooterWrapper, WizardStep, useWizardContext } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useContext, useEffect, useId, useMemo, useRef, useState, type ReactElement } from 'react';

import { addApplication } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import type { ObjectModel } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useAfterPress } from '../shell/press';
import { useText } from '../text';
import { evaluate, type Definition } from './definition';
import { FormStep, idOf, type FormState } from './FormStep';
import { forget, keyOf, read, write } from './kept';
import { Place } from './place';
import { ReviewStep } from './ReviewStep';
import { useFilled } from './useFilled';
import { errorsIn, keepable, stepsOf, unconfirmed, withValue, type FormError } from './values';

interface Props {
  definition: Definition;
  /** The step that is shown, from 0; that after the last form is the review. */
  at: number;
  onGo: (step: number) => void;
  action: string;
  /** The application's name until the user types another one. */
  suggested: string;
  header?: ReactElement;
  /** Called with the object that was added to the draft; its work belongs to the adding. */
  onAdded: (model: ObjectModel) => unknown;
  onClose: () => void;
}

/** Asks for an application's input, step by step, and adds it to the draft. */
export function ApplicationWizard({ definition, at, onGo, action, suggested, header, onAdded, onClose }: Props) {
  const text = useText();
  const words = text.wizard;
  const prefix = useId();
  const client = useQueryClient();
  const { environment, path } = useContext(Place);
  const { user } = useDraft(environment);
  const key = keyOf(environment, ...path, definition.package);
  const [filled, setFilled] = useState(() => {
    const kept = read(sessionStorage, key);
    return { ...kept, name: kept.name || (definition.named ? suggested : '') };
  });
  const [repeated, setRepeated] = useState<FormState['repeated']>({});
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [pressed, setPressed] = useState<ReadonlySet<string>>(new Set());
  const [toFocus, setToFocus] = useState<{ id: string } | null>(null);
  const afterPress = useAfterPress();
  const { evaluation, isCurrent, error } = useFilled(definition, filled);

  const steps = useMemo(() => stepsOf(evaluation.forms, definition.named, words.name), [evaluation.forms, definition.named, words.name]);
  const current = Math.min(Math.max(at, 0), steps.length);
  const errors = [...evaluation.errors, ...unconfirmed(evaluation.forms, filled.values, repeated, words.differ)];
  const state: FormState = { ...filled, repeated };

  const added = useRef<ObjectModel | null>(null);
  useEffect(() => {
    if (!added.current) write(sessionStorage, key, { name: filled.name, values: keepable(evaluation.forms, filled.values) });
  }, [key, filled, evaluation.forms]);

  // The focus goes to the first error.
  useEffect(() => {
    if (toFocus) document.getElementById(toFocus.id)?.focus();
  }, [toFocus]);

  const judge = async (): Promise<{ errors: FormError[]; model: ObjectModel | null }> => {
    const now = await evaluate(definition, filled.name, filled.values, words);
    return { errors: [...now.errors, ...unconfirmed(now.forms, filled.values, repeated, words.differ)], model: now.model };
  };
  const press = (ids: string[]) => setPressed((before) => new Set([...before, ...ids]));
  const next = useMutation({
    mutationFn: judge,
    onSuccess: (verdict) => {
      const step = steps[current];
      if (!step) return;
      press([step.id]);
      const wrong = errorsIn(step, verdict.errors)[0];
      if (wrong) setToFocus({ id: idOf(prefix, wrong.form, wrong.field) });
      else onGo(current + 1);
    },
  });
  const finish = useMutation({
    mutationFn: async () => {
      // The work after the adding may fail, and is tried again without adding a second one.
      if (!added.current) {
        const verdict = await judge();
        press(steps.map((step) => step.id));
        if (!verdict.model || verdict.errors.length > 0) return false;
        await addApplication(client, user, environment, verdict.model);
        added.current = verdict.model;
        forget(sessionStorage, key);
      }
      await onAdded(added.current);
      return true;
    },
  });

  const isReview = current >= steps.length;
  const isBusy = next.isPending || finish.isPending || finish.data === true;
  const isJudged = (stepId: string) => (form: string, field: string) => pressed.has(stepId) || left.has(`${form}.${field}`);
  const footer = (
    <WizardFooterWrapper>
      <ActionList className="burano-wizard-actions">
        <ActionListGroup>
          <ActionListItem>
            <Button variant="secondary" onClick={() => onGo(current - 1)} isDisabled={current === 0 || isBusy}>
              {words.back}
            </Button>
          </ActionListItem>
          <ActionListItem>
            {isReview ? (
              <Button onClick={() => finish.mutate()} isLoading={isBusy} isDisabled={isBusy || (isCurrent && errors.length > 0)}>
                {action}
              </Button>
            ) : (
              <Button onClick={() => next.mutate()} isLoading={next.isPending} isDisabled={isBusy}>
                {words.next}
              </Button>
            )}
          </ActionListItem>
        </ActionListGroup>
        <ActionListGroup>
          <ActionListItem>
            <Button variant="link" onClick={onClose} isDisabled={isBusy}>
              {text.shell.cancel}
            </Button>
          </ActionListItem>
        </ActionListGroup>
      </ActionList>
    </WizardFooterWrapper>
  );
  const failure = error ?? next.error ?? finish.error;
  return (
    <Wizard
      header={header}
      footer={footer}
      startIndex={current + 1}
      navAriaLabel={words.steps}
      onStepChange={(_event, step) => {
        if (step.index - 1 !== current) onGo(step.index - 1);
      }}
      shouldFocusContent={false}
      isPlain={!header}
    >
      {[
        ...steps.map((step) => (
          <WizardStep
            key={step.id || 'name'}
            id={step.id || 'name'}
            name={step.title}
            status={pressed.has(step.id) && errorsIn(step, errors).length > 0 ? 'error' : 'default'}
          >
            <Follow step={current} />
            {failure && <Failure error={failure} />}
            <FormStep
              prefix={prefix}
              step={step}
              state={state}
              errors={errors}
              isJudged={isJudged(step.id)}
              onName={(name) => setFilled((before) => ({ ...before, name }))}
              onChange={(form, field, value) => setFilled((before) => ({ ...before, values: withValue(before.values, form, field, value) }))}
              onRepeat={(form, field, value) => setRepeated((before) => withValue(before, form, field, value))}
              onLeave={(form, field) => afterPress(() => setLeft((before) => new Set([...before, `${form}.${field}`])))}
              onSubmit={() => next.mutate()}
            />
          </WizardStep>
        )),
        <WizardStep key="?review" id="?review" name={words.review}>
          <Follow step={current} />
          {failure && <Failure error={failure} />}
          <ReviewStep steps={steps} state={state} errors={errors} model={isCurrent ? evaluation.model : null} onGo={onGo} />
        </WizardStep>,
      ]}
    </Wizard>
  );
}

/** Shows the step that the address names, also when the browser goes back or forward. */
function Follow({ step }: { step: number }) {
  const { activeStep, goToStepByIndex } = useWizardContext();
  const shown = activeStep.index - 1;
  useEffect(() => {
    if (shown !== step) goToStepByIndex(step + 1);
    // Only a change of the address moves the wizard; its own moves change the address.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [step]);
  return null;
}
