// A Kubernetes cluster's answers, for pages that show one: the local cloud of these scenarios has no servers. What the server answers of real
// clusters is test/e2e's.

export const payload = '<img src=x onerror=alert(1)><script>alert(2)</script>';

const created = new Date(Date.now() - 3_600_000).toISOString();

const container = (name, part = {}) => ({ name, image: `registry.local/${name}:1`, init: false, state: 'Running', message: '', ready: true, restarts: 0, started: created, ...part });

const pod = (name, part = {}) => ({
  namespace: 'default', name, state: 'Running', healthy: true, message: '', node: 'murano-kube-2', address: '10.200.1.7',
  owner: { kind: 'Deployment', name: 'web' }, object: '', created, containers: [container('web')], ...part,
});

export const status = {
  name: 'kube', api: 'https://10.0.0.5:6443', healthy: true, problems: [],
  nodes: [
    { name: 'murano-kube-1', role: 'master', address: '10.0.0.5', floating_address: '', server: 's1', reachable: true, ready: null, version: '' },
    { name: 'murano-kube-2', role: 'minion', address: '10.0.0.6', floating_address: '', server: 's2', reachable: true, ready: true, version: 'v1.36.0' },
    { name: 'murano-gateway-1', role: 'gateway', address: '10.0.0.7', floating_address: '203.0.113.9', server: 's3', reachable: true, ready: null, version: '' },
  ],
  members: [{ name: 'murano-kube-1', learner: false, healthy: true }],
  certificates: [
    { node: 'murano-kube-1', name: 'etcd-peer', expires: new Date(Date.now() + 10 * 86_400_000).toISOString() },
    ...Array.from({ length: 8 }, (_, i) => ({ node: 'murano-kube-2', name: `of kubelet ${i}`, expires: new Date(Date.now() + (600 + i) * 86_400_000).toISOString() })),
    { node: '', name: 'kubernetes', expires: new Date(Date.now() + 3_600 * 86_400_000).toISOString() },
  ],
  rotation: null,
  routes: [{
    namespace: 'default', service: payload, port: '80', gateway_port: 8080,
    backends: [
      { address: '10.200.1.7', port: 80, node: 'murano-kube-2', ready: true, draining: false },
      { address: '10.200.1.8', port: 80, node: 'murano-kube-2', ready: true, draining: false },
    ],
  }],
};

const counters = {
  connections: 2, connections_per_second: 0, connections_total: 0, bytes_in: 0, bytes_out: 0, connection_errors: 0, response_errors: 0, request_errors: 0, denied: 0,
  retries: 0, redispatches: 0,
};

/** What gateways count at their sample of that number: each more than before, with an error from the second on. */
const traffic = (n) => ({
  sampled: new Date(Date.UTC(2026, 0, 1, 0, 0, 2 * n)).toISOString(),
  gateways: [
    {
      name: 'murano-gateway-1', problem: '',
      listeners: [{
        ...counters, port: 8080, queued: 0, connections_per_second: 10 + n, bytes_in: 2048 * n, bytes_out: 4096 * n, connection_errors: Math.min(n, 1),
        backends: [
          { ...counters, address: '10.200.1.7:80', state: 'up', check: '', seconds: 60, connections_per_second: 10 + n },
          { ...counters, address: '10.200.1.8:80', state: 'down', check: 'Layer4 timeout', seconds: 3 },
        ],
      }],
    },
    { name: 'murano-gateway-2', problem: `no sshd answered ${payload}`, listeners: [] },
  ],
});

const snapshot = (id, part) => ({
  id, environment_id: 'e', environment_name: 'e', environment_deleted: null, cluster_id: 'c1', cluster_name: 'kube', kind: 'scheduled', reason: 'every 24h0m0s', created, verified: created,
  revision: 7, size: 5_242_880, stored: 1_048_576, loss: '', ...part,
});

/** The cluster as a component: with the actions that its class has. */
export const component = {
  '?': {
    id: 'c1', type: 'com.mirantis.docker.kubernetes.KubernetesCluster', name: 'kube',
    _actions: Object.fromEntries(['restore', 'renewCertificates', 'rotate'].map((name) => [`c1_${name}`, { name, enabled: true, title: name }])),
  },
  name: 'kube', snapshotEvery: 6,
};

const web = pod('web-6f7c9d-abcde', {
  state: 'CrashLoopBackOff', healthy: false, message: `back-off 40s restarting failed container ${payload}`,
  containers: [
    container('prepare', { init: true, state: 'Completed', ready: false, started: null }),
    container('web', { state: 'CrashLoopBackOff', ready: false, restarts: 4, message: payload, started: null }),
  ],
});

export const running = {
  workloads: [
    { kind: 'Deployment', namespace: 'default', name: 'web', wanted: 3, ready: 2, images: ['registry.local/web:1'], created, managed: false, object: '' },
    { kind: 'DaemonSet', namespace: 'kube-system', name: 'calico-node', wanted: 3, ready: 3, images: ['registry.local/calico:3'], created, managed: true, object: '' },
  ],
  pods: [web, ...Array.from({ length: 60 }, (_, i) => pod(`web-6f7c9d-${String(i).padStart(5, '0')}`)),
    pod('calico-node-xyz', { namespace: 'kube-system', owner: { kind: 'DaemonSet', name: 'calico-node' } })],
};

const details = {
  ...web,
  events: [
    { type: 'Warning', reason: 'BackOff', message: payload, count: 12, last: new Date(Date.now() - 60_000).toISOString() },
    { type: 'Normal', reason: 'Pulled', message: 'Container image is there', count: 1, last: created },
  ],
};

const workload = { ...running.workloads[0], events: details.events };

const lines = (texts) => `event: lines\nid: ${created}\ndata: ${JSON.stringify({ lines: texts.map((text) => ({ time: created, text })) })}\n\n`;

/** A log with what a pod may write, of which one line is very long. */
export const written = ['starting', payload, '\u001b[31mred\u001b[0m', `${payload}${'x'.repeat(9_000)}`, ...Array.from({ length: 200 }, (_, i) => `line ${i}`)];

/** Gateways without a cluster, as a component, and how they are. */
export const gateways = {
  component: { '?': { ...component['?'], type: 'io.burano.Gateways', name: 'doors', _actions: { c1_renewCertificates: { name: 'renewCertificates', enabled: true, title: 'renewCertificates' } } }, name: 'doors' },
  status: {
    ...status, name: 'doors', api: '', members: [], nodes: [status.nodes[2]], virtual_address: { address: '10.0.0.100', floating_address: '203.0.113.100' },
    certificates: [{ node: 'murano-gateway-1', name: 'gateway', expires: new Date(Date.now() + 600 * 86_400_000).toISOString() }],
  },
};

/** Has the browser get these answers for every cluster; returns what was asked. */
export async function pretend(page, is = { component, status }) {
  const asked = [];
  let samples = 0;
  let snapshots = [snapshot('s2', {}), snapshot('s1', { kind: 'requested', reason: payload })];
  await page.route(/\/v1\/environments\/[^/]+$/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), services: [is.component] } });
  });
  await page.route(/\/v1\/environments\/[^/]+\/actions\//, (route) => {
    asked.push(`${route.request().method()} ${new URL(route.request().url()).pathname.replace(/.*\/actions/, '')} ${route.request().postData()}`);
    return route.fulfill({ status: 409, json: { message: 'Nothing runs here' } });
  });
  await page.route(/\/burano\/v1\/snapshots/, (route) => {
    if (route.request().method() === 'DELETE') snapshots = snapshots.filter((one) => !route.request().url().endsWith(one.id));
    return route.fulfill({ json: { snapshots } });
  });
  await page.route(/\/burano\/v1\/environments\/[^/]+\/clusters\//, async (route) => {
    const url = new URL(route.request().url());
    asked.push(url.pathname + url.search);
    const rest = url.pathname.replace(/.*\/clusters\/[^/]+/, '');
    const json = (body) => route.fulfill({ json: body });
    if (rest === '') return json(is.status);
    if (rest === '/traffic') return json(traffic(samples++));
    if (rest === '/snapshots') {
      snapshots = [snapshot('s3', { kind: 'requested', reason: JSON.parse(route.request().postData()).reason }), ...snapshots];
      return json(snapshots[0]);
    }
    if (rest === '/running') return json(running);
    if (rest.endsWith('/log/events')) {
      return route.fulfill({ contentType: 'text/event-stream', body: `${lines(written)}event: end\ndata: {"state":"Deleted"}\n\n` });
    }
    if (rest.endsWith('/log')) return route.fulfill({ contentType: 'text/plain', body: 'all of it\n' });
    if (['PUT', 'POST'].includes(route.request().method())) {
      asked.push(`${route.request().method()} ${rest} ${route.request().postData() ?? ''}`);
      return route.fulfill({ status: 200, body: '' });
    }
    if (rest.startsWith('/pods/')) return json(details);
    if (rest.startsWith('/workloads/')) return json(workload);
    return route.fulfill({ status: 404, json: { message: 'There is no such thing' } });
  });
  return asked;
}
