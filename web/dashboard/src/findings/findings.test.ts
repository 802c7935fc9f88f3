import { describe, expect, it } from 'vitest';

import { counted, worst, type Finding, type Severity } from './findings';

const finding = (environment: string, severity: Severity): Finding => ({
  id: `${environment}-${severity}`,
  environment_id: environment,
  duty: 'health',
  object_id: null,
  kind: 'node-unreachable',
  subject: null,
  severity,
  text: '',
  mends: '',
  since: '2026-01-01T00:00:00Z',
  closed: null,
  repairs: 0,
  deployment_id: null,
  next_repair: null,
});

describe('findings', () => {
  it('are counted by severity', () => {
    expect(counted([finding('a', 'critical'), finding('a', 'info'), finding('b', 'info')])).toEqual({ critical: 1, warning: 0, info: 2 });
  });

  it('mark an environment with the worst that wants attention', () => {
    const marks = worst([finding('a', 'warning'), finding('a', 'critical'), finding('b', 'warning'), finding('c', 'info')]);
    expect(marks.get('a')).toEqual({ severity: 'critical', count: 2 });
    expect(marks.get('b')).toEqual({ severity: 'warning', count: 1 });
    expect(marks.has('c')).toBe(false);
  });
});
