import { describe, expect, it } from 'vitest';

import type { Report } from '../api/follow';
import type { Deployment } from './deployments';
import { causesOf, failureOf } from './failure';

const error = (text: string, object?: string): Report => ({ level: 'error', text, entity_id: object ?? null });

describe('the causes of a failure', () => {
  it('are sentences without methods and names of exceptions', () => {
    const reports: Report[] = [
      { level: 'info', text: 'Deploying kube' },
      error('com.mirantis.docker.kubernetes.KubernetesCluster.deploy: murano-kube-2: connect: no sshd answered', 'c1'),
      error('io.murano.Environment.deploy: [io.burano.test.TooEarly]: It is too early for that'),
      { level: 'info', text: 'Deployment finished with errors' },
    ];
    expect(causesOf(reports)).toEqual([
      { sentence: 'murano-kube-2: connect: no sshd answered', object: 'c1' },
      { sentence: 'It is too early for that', object: '' },
    ]);
  });

  it('are listed once each', () => {
    expect(causesOf([error('a.B.deploy: no', 'x'), error('a.B.deploy: no', 'x'), error('a.B.deploy: no', 'y')])).toHaveLength(2);
  });

  it('keep the name of a host', () => {
    expect(causesOf([error('db.example.com: connection refused')])).toEqual([{ sentence: 'db.example.com: connection refused', object: '' }]);
  });
});

describe('the failure of an environment', () => {
  const run = (id: string, method: string, state: Deployment['state']): Deployment => ({ id, state, action: { method } });

  it('is not ended by an action', () => {
    expect(failureOf([run('2', 'status', 'success'), run('1', 'deploy', 'completed_w_errors')])?.id).toBe('1');
  });

  it('is ended by a deployment', () => {
    expect(failureOf([run('2', 'deploy', 'success'), run('1', 'deploy', 'completed_w_errors')])).toBeNull();
  });

  it('is the failed action that ran last', () => {
    expect(failureOf([run('2', 'scale', 'completed_w_errors'), run('1', 'deploy', 'success')])?.id).toBe('2');
  });
});
