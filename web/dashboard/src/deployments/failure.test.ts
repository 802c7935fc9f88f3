import { describe, expect, it } from 'vitest';

import type { Report } from '../api/follow';
import { causesOf } from './failure';

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
