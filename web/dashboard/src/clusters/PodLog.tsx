import { Alert, Button, Checkbox, Content, FormSelect, FormSelectOption, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { DownloadIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useDeferredValue, useMemo, useState } from 'react';

import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import LogText from './LogText';
import { shownLines, useTail } from './tail';
import { logPath, mainContainer, saveLog, type PodDetails } from './running';

/** How many lines of the log are saved as a file: as many as the server gives. */
const saved = '10000';

/** A container's log as it is written. */
export default function PodLog({ environment, cluster, pod }: { environment: string; cluster: string; pod: PodDetails }) {
  const { text, language } = useLanguage();
  const words = text.running;
  const navigate = useNavigate();
  const { container: wanted } = useSearch({ from: '/environments/$environment/clusters/$object/pods/$namespace/$pod' });
  const container = mainContainer(pod, wanted);
  const [find, setFind] = useState('');
  const [times, setTimes] = useState(true);
  const [wraps, setWraps] = useState(true);
  const path = (query: Record<string, string>, events = false) => logPath(environment, cluster, pod.namespace, pod.name, { container, ...query }, events);
  const tail = useTail(path({}, true));
  const save = useMutation({
    mutationFn: (former: boolean) =>
      saveLog(path({ tail: saved, timestamps: 'true', ...(former ? { previous: 'true' } : {}) }), `${pod.name}-${container}${former ? '-former' : ''}.log`),
  });
  const clock = useMemo(() => new Intl.DateTimeFormat(language, { timeStyle: 'medium' }), [language]);
  const wantedWords = useDeferredValue(find);
  const lines = useMemo(
    () => shownLines(tail.lines, wantedWords, times ? (time) => clock.format(new Date(time)) : null),
    [tail.lines, wantedWords, times, clock],
  );
  const restarted = (pod.containers.find((one) => one.name === container)?.restarts ?? 0) > 0;
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          {pod.containers.length > 1 && (
            <ToolbarItem>
              <FormSelect
                aria-label={words.container}
                value={container}
                onChange={(_event, value) => void navigate({ to: '.', search: { container: value }, replace: true })}
              >
                {pod.containers.map((one) => (
                  <FormSelectOption key={one.name} value={one.name} label={one.init ? `${one.name} (${words.init})` : one.name} />
                ))}
              </FormSelect>
            </ToolbarItem>
          )}
          <ToolbarItem>
            <SearchInput aria-label={words.findInLog} placeholder={words.findInLog} value={find} onChange={(_event, value) => setFind(value)} onClear={() => setFind('')} />
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Checkbox id="log-times" label={words.showTimes} isChecked={times} onChange={(_event, checked) => setTimes(checked)} />
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Checkbox id="log-wraps" label={words.wrap} isChecked={wraps} onChange={(_event, checked) => setWraps(checked)} />
          </ToolbarItem>
          <ToolbarItem align={{ default: 'alignEnd' }}>
            <Button variant="link" icon={<DownloadIcon />} onClick={() => save.mutate(false)} isDisabled={save.isPending}>
              {words.save}
            </Button>
          </ToolbarItem>
          {restarted && (
            <ToolbarItem>
              <Button variant="link" icon={<DownloadIcon />} onClick={() => save.mutate(true)} isDisabled={save.isPending}>
                {words.saveFormer}
              </Button>
            </ToolbarItem>
          )}
        </ToolbarContent>
      </Toolbar>
      {save.error && <Failure error={save.error} />}
      {lines.length === 0 ? (
        <Content component="p">{tail.lines.length > 0 ? words.noLines : words.noLog}</Content>
      ) : (
        <LogText
          lines={lines}
          label={words.log}
          wraps={wraps}
          toEnd={(follow) => (
            <Button variant="secondary" isBlock onClick={follow}>
              {words.follow}
            </Button>
          )}
        />
      )}
      <Content component="small">
        <span role="status">
          {[
            words.lines(lines.length),
            tail.gone > 0 ? words.gone(tail.gone) : '',
            tail.ended ? words.ended(tail.state) : tail.state ? words.waits(tail.state) : tail.connected ? words.follows : '',
          ]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </Content>
      {!tail.connected && !tail.ended && tail.lines.length > 0 && <Alert variant="warning" isInline isPlain title={words.reconnecting} />}
    </>
  );
}
