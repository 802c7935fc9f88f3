import { describe, expect, it } from 'vitest';

import { en } from '../text/en';
import { de } from '../text/de';
import { counted, titleOf, worst, type Finding, type Severity } from './findings';
import { linkOf } from './remedies';

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
  remedies: [],
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

describe('a finding', () => {
  const one: Finding = { ...finding('e', 'warning'), text: 'Node a of cluster k is not reached over SSH: no route', subject: 'a', object_id: 'k' };
  it('has the words of each language, and the server’s for a kind that is not known', () => {
    expect(titleOf(one, en.findings)).toBe('A node is not reached: a');
    expect(titleOf(one, de.findings)).toBe('Ein Node ist nicht zu erreichen: a');
    expect(titleOf({ ...one, subject: null }, en.findings)).toBe('A node is not reached');
    expect(titleOf({ ...one, kind: 'new' }, en.findings)).toBe(one.text);
    expect(Object.keys(de.findings.titles)).toEqual(Object.keys(en.findings.titles));
    expect(Object.keys(de.findings.remedies)).toEqual(Object.keys(en.findings.remedies));
  });
  it('leads to the page where it is mended', () => {
    expect(linkOf({ kind: 'reboot-node', node: 'a' }, one)).toMatchObject({ to: '/environments/$environment/clusters/$object', params: { environment: 'e', object: 'k' } });
    expect(linkOf({ kind: 'set-delegation' }, one)).toMatchObject({ to: '/environments/$environment', search: { tab: 'access' } });
    expect(linkOf({ kind: 'rotate-certificates' }, one)).toMatchObject({ search: { tab: 'protection' } });
    expect(linkOf({ kind: 'rotate-certificates' }, { ...one, object_id: null })).toBeNull();
    expect([linkOf({ kind: 'wait' }, one), linkOf({ kind: 'start-server' }, one)]).toEqual([null, null]);
  });
});
