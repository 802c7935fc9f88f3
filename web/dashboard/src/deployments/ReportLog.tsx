import { Button, Content, FormSelect, FormSelectOption, SearchInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { DownloadIcon } from '@patternfly/react-icons';
import { useDeferredValue, useMemo, useState } from 'react';

import { download } from '../api/download';
import type { Report } from '../api/follow';
import { useText } from '../text';
import { Lines } from './Lines';
import { everything, filtered, levels, logText, reporters, type Filter, type Level } from './log';

interface Props {
  reports: Report[];
  /** The names of the objects that reports are about, by id. */
  names: Map<string, string>;
  /** The name under which the log is saved. */
  file: string;
}

/** A log with search and filters. */
export function ReportLog({ reports, names, file }: Props) {
  const text = useText();
  const words = text.deployments;
  const [filter, setFilter] = useState<Filter>(everything);
  const wanted = useDeferredValue(filter);
  const shown = useMemo(() => filtered(reports, wanted), [reports, wanted]);
  const objects = useMemo(() => reporters(reports), [reports]);
  if (reports.length === 0) return <Content component="p">{words.noReports}</Content>;
  const change = (part: Partial<Filter>) => setFilter((now) => ({ ...now, ...part }));
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <SearchInput
              aria-label={words.findInLog}
              placeholder={words.findInLog}
              value={filter.words}
              onChange={(_event, value) => change({ words: value })}
              onClear={() => change({ words: '' })}
            />
          </ToolbarItem>
          <ToolbarItem>
            <FormSelect aria-label={words.level} value={filter.level} onChange={(_event, value) => change({ level: value as Level })}>
              {levels.map((level) => (
                <FormSelectOption key={level} value={level} label={words.atLeast[level]} />
              ))}
            </FormSelect>
          </ToolbarItem>
          {objects.length > 1 && (
            <ToolbarItem>
              <FormSelect aria-label={words.object} value={filter.object} onChange={(_event, value) => change({ object: value })}>
                <FormSelectOption value="" label={words.allObjects} />
                {objects.map((object) => (
                  <FormSelectOption key={object} value={object} label={names.get(object) ?? object} />
                ))}
              </FormSelect>
            </ToolbarItem>
          )}
          <ToolbarItem alignSelf="center">
            <small role="status">{words.lines(shown.length, reports.length)}</small>
          </ToolbarItem>
          <ToolbarItem align={{ default: 'alignEnd' }}>
            <Button variant="link" icon={<DownloadIcon />} onClick={() => download(file, logText(shown, names), 'text/plain')}>
              {words.saveLog}
            </Button>
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      {shown.length === 0 ? <Content component="p">{words.noLines}</Content> : <Lines reports={shown} names={names} follows />}
    </>
  );
}
