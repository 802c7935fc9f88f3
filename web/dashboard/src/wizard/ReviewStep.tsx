import { Alert, AlertActionLink, Content } from '@patternfly/react-core';

import type { ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { Answers } from './Answers';
import type { FormState } from './FormStep';
import { QuotaPreview } from './QuotaPreview';
import { errorsIn, type FormError, type Step } from './values';

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
  const first = steps.findIndex((step) => errorsIn(step, errors).length > 0);
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
      <Answers steps={steps} name={state.name} values={state.values} />
    </>
  );
}

function labelOf(steps: Step[], error: FormError): string {
  const form = steps.find((step) => step.form?.name === error.form)?.form;
  return form?.fields.find((field) => field.name === error.field)?.label ?? '';
}
