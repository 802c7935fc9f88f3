import {
  Alert,
  Button,
  Content,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { showTime } from '../api/time';
import { Facts } from '../shell/FactsCard';
import { Failure } from '../shell/Failure';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { asList, asText, dropSchedule, hibernationQuery, setSchedule, type SleepSchedule } from './schedule';

interface Props {
  environment: string;
  name: string;
  onClose: () => void;
}

/** The times at which an environment sleeps and wakes by itself. */
export function ScheduleDialog({ environment, name, onClose }: Props) {
  const { text } = useLanguage();
  const words = text.environments.schedule;
  const id = useId();
  const asked = useQuery(hibernationQuery(environment));
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.title(name)} labelId={`${id}-title`} />
      <Loaded query={asked}>{(found) => <ScheduleForm environment={environment} schedule={found.schedule} onClose={onClose} />}</Loaded>
    </Modal>
  );
}

function ScheduleForm({ environment, schedule, onClose }: { environment: string; schedule: SleepSchedule | null; onClose: () => void }) {
  const { text, language } = useLanguage();
  const words = text.environments.schedule;
  const id = useId();
  const client = useQueryClient();
  const [zone, setZone] = useState(schedule?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [sleep, setSleep] = useState(schedule ? asText(schedule.sleep) : '0 20 * * 1-5');
  const [wake, setWake] = useState(schedule ? asText(schedule.wake) : '0 7 * * 1-5');
  const done = () => {
    void client.invalidateQueries({ queryKey: hibernationQuery(environment).queryKey });
    onClose();
  };
  const save = useMutation({ mutationFn: () => setSchedule(environment, { zone, sleep: asList(sleep), wake: asList(wake) }), onSuccess: done });
  const end = useMutation({ mutationFn: () => dropSchedule(environment), onSuccess: done });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  const isPending = save.isPending || end.isPending;
  const field = (key: string, label: string, value: string, set: (value: string) => void, help: string) => (
    <FormGroup label={label} fieldId={`${id}-${key}`}>
      <TextInput id={`${id}-${key}`} value={value} onChange={(_event, now) => set(now)} maxLength={800} aria-describedby={`${id}-${key}-help`} />
      <FormHelperText>
        <HelperText id={`${id}-${key}-help`}>
          <HelperTextItem>{help}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
  return (
    <>
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {save.error && <Failure error={save.error} />}
          {end.error && <Failure error={end.error} />}
          <Content component="p">{words.what}</Content>
          {schedule && !schedule.delegated && <Alert variant="warning" isInline title={words.undelegated} />}
          {schedule && (
            <Facts
              rows={[
                [words.nextSleep, schedule.next_sleep ? showTime(schedule.next_sleep, language) : text.shell.never],
                [words.nextWake, schedule.next_wake ? showTime(schedule.next_wake, language) : text.shell.never],
              ]}
            />
          )}
          {field('sleep', words.sleep, sleep, setSleep, words.expression)}
          {field('wake', words.wake, wake, setWake, words.wakeWhat)}
          {field('zone', words.zone, zone, setZone, words.zoneWhat)}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!zone.trim() || asList(sleep).length + asList(wake).length === 0 || isPending} isLoading={save.isPending}>
          {text.shell.save}
        </Button>
        {schedule && (
          <Button variant="secondary" onClick={() => end.mutate()} isDisabled={isPending} isLoading={end.isPending}>
            {words.end}
          </Button>
        )}
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </>
  );
}
