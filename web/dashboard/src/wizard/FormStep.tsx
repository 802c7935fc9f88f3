import { Content, ExpandableSection, Form, Label, TextInput } from '@patternfly/react-core';
import { useState } from 'react';

import { useText } from '../text';
import { FieldInput } from './FieldInput';
import { describedBy, FieldRow } from './FieldRow';
import { FormRegion } from './place';
import { byTopic, differs, errorsOf, valueOf, type Field, type FormError, type Step, type Values } from './values';

export interface FormState {
  name: string;
  values: Values;
  repeated: Values;
}

interface Props {
  prefix: string;
  step: Step;
  state: FormState;
  errors: FormError[];
  /** Whether the errors of a field are shown: it was left, or Next was pressed. */
  isJudged: (form: string, field: string) => boolean;
  onName: (name: string) => void;
  onChange: (form: string, field: string, value: unknown) => void;
  onRepeat: (form: string, field: string, value: unknown) => void;
  onLeave: (form: string, field: string) => void;
  onSubmit: () => void;
}

export const idOf = (prefix: string, form: string, field: string): string => `${prefix}-${form}-${field}`;

/** One form: its main questions one below the other, then the others, folded by topic. */
export function FormStep({ prefix, step, state, errors, isJudged, onName, onChange, onRepeat, onLeave, onSubmit }: Props) {
  const words = useText().wizard;
  const form = step.form;
  const [decided, setDecided] = useState<ReadonlyMap<string, boolean>>(new Map());
  const shownErrors = (field: Field) => (form && isJudged(form.name, field.name) ? errorsOf(errors, form.name, field.name) : []);
  const input = (field: Field) => {
    if (!form) return null;
    const shown = shownErrors(field);
    return (
      <FieldInput
        key={field.name}
        id={idOf(prefix, form.name, field.name)}
        field={field}
        value={valueOf(state.values, form.name, field)}
        isWrong={shown.length > 0}
        errors={shown}
        onChange={(value) => onChange(form.name, field.name, value)}
        onLeave={() => onLeave(form.name, field.name)}
        repeated={state.repeated[form.name]?.[field.name]}
        onRepeat={(value) => onRepeat(form.name, field.name, value)}
      />
    );
  };
  const whole = form && isJudged(form.name, '') ? errorsOf(errors, form.name, '') : [];
  return (
    <Form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {form?.fields
        .filter((field) => field.hidden && field.description && field.name !== 'license')
        .map((field) => (
          <Content key={field.name} component="p" className="burano-breaks">
            {field.description}
          </Content>
        ))}
      {typeof form?.region === 'string' && form.region && <Label>{words.region(form.region)}</Label>}
      {whole.map((message) => (
        <Content key={message} component="p" className="burano-log-error">
          {message}
        </Content>
      ))}
      {step.named && (
        <FieldRow
          id={idOf(prefix, '', 'name')}
          label={words.name}
          description={words.nameWhat}
          isRequired
          errors={isJudged('', 'name') ? errorsOf(errors, '', 'name') : []}
        >
          <TextInput
            id={idOf(prefix, '', 'name')}
            value={state.name}
            isRequired
            validated={isJudged('', 'name') && errorsOf(errors, '', 'name').length > 0 ? 'error' : 'default'}
            aria-describedby={describedBy(idOf(prefix, '', 'name'))}
            onChange={(_event, name) => onName(name)}
            onBlur={() => onLeave('', 'name')}
            autoComplete="off"
          />
        </FieldRow>
      )}
      <FormRegion.Provider value={typeof form?.region === 'string' ? form.region : ''}>
        {form && byTopic(form).main.map(input)}
        {form &&
          byTopic(form).topics.map(([topic, fields]) => {
            const changed = fields.filter((field) => differs(state.values, form.name, field)).length;
            const isWrong = fields.some((field) => shownErrors(field).length > 0);
            const isOpen = isWrong || (decided.get(topic) ?? false);
            return (
              <ExpandableSection
                key={topic}
                toggleText={changed > 0 ? words.changed(topic, changed) : topic}
                isExpanded={isOpen}
                onToggle={(_event, open) => setDecided(new Map(decided).set(topic, open))}
                isIndented
              >
                {/* A topic that an error has opened stays open when the error is gone. */}
                <div className="burano-topic" onFocusCapture={() => setDecided(new Map(decided).set(topic, true))}>
                  {fields.map(input)}
                </div>
              </ExpandableSection>
            );
          })}
      </FormRegion.Provider>
      {/* Return in a field goes on: a form needs a button of its own for that. */}
      <button type="submit" hidden aria-hidden tabIndex={-1} />
    </Form>
  );
}
