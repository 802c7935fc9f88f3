import { expect, it } from 'vitest';

import { byRun } from './runs';

it('puts reports together by their runs', () => {
  const reports = [
    { id: '4', task_id: 'new' },
    { id: '3', task_id: 'new' },
    { id: '2', task_id: 'old' },
  ];
  expect(byRun(reports).map((run) => [run.task, run.reports.map((report) => report.id)])).toEqual([
    ['new', ['3', '4']],
    ['old', ['2']],
  ]);
  expect(byRun([])).toEqual([]);
});
