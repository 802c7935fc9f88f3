// All pages with something on them: what is looked at in each light, width and language.
import { call, deploy, draft, environment, eventually, fresh } from './harness.mjs';

/** Makes something for every page to show, and returns the pages' names and addresses. */
export async function allPages(request) {
  const made = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello', times: 3 });
  const failed = await deploy(request, { type: 'io.burano.test.Hello', greeting: 'Hello' }, { type: 'io.burano.test.Payload' });
  for (const one of [made, failed]) {
    await eventually(() => call(request, 'GET', `/v1/environments/${one.environment}`), (now) => !['deploying', 'pending'].includes(now.status), 'the deployment');
  }
  const pending = await environment(request, fresh('with a draft'));
  const empty = await environment(request, fresh('production of the shop and its monitoring in the second data centre of Frankfurt'));
  await draft(request, pending, { type: 'io.burano.test.Hello', greeting: 'Hello' });
  const again = await call(request, 'POST', `/v1/environments/${made.environment}/configure`);
  await call(request, 'POST', `/v1/environments/${made.environment}/sessions/${again.id}/deploy`);
  await eventually(() => call(request, 'GET', `/v1/environments/${made.environment}`), (now) => now.status === 'ready', 'another deployment');
  const { deployments } = await call(request, 'GET', `/v1/environments/${made.environment}/deployments`);
  const template = await call(request, 'POST', '/v1/templates', { name: fresh('template'), services: [] });
  const [component] = (await call(request, 'GET', `/v1/environments/${made.environment}`)).services;
  const idOf = async (fqn) => (await call(request, 'GET', `/v1/catalog/packages?fqn=${fqn}&catalog=true`)).packages[0].id;
  const [hello, cluster] = [await idOf('io.burano.test.Hello'), await idOf('com.mirantis.docker.kubernetes.KubernetesCluster')];
  return {
    catalog: 'catalog',
    'catalog-nothing-found': 'catalog?search=nothing-is-called-that',
    application: `catalog/${cluster}`,
    environments: 'environments',
    environment: `environments/${made.environment}`,
    'environment-draft': `environments/${pending}`,
    'environment-empty': `environments/${empty}`,
    'environment-access': `environments/${empty}?tab=access`,
    'environment-topology': `environments/${made.environment}?tab=topology`,
    'environment-history': `environments/${made.environment}?tab=history`,
    'environment-past': `environments/${made.environment}?tab=past`,
    component: `environments/${made.environment}/components/${component['?'].id}`,
    'component-log': `environments/${made.environment}/components/${component['?'].id}?tab=log`,
    wizard: `environments/${pending}/add/${hello}`,
    'wizard-cluster': `environments/${pending}/add/${cluster}`,
    'wizard-review': `environments/${pending}/add/${hello}?step=3`,
    deployment: `environments/${made.environment}/deployments/${made.deployment}`,
    'deployment-failed': `environments/${failed.environment}/deployments/${failed.deployment}`,
    'deployments-compared': `environments/${made.environment}/compare?before=${deployments[1].id}&after=${deployments[0].id}`,
    deployments: 'deployments',
    templates: 'templates',
    template: `templates/${template.id}`,
    packages: 'packages',
    'packages-compared': `packages/compare?ids=${hello},${cluster}`,
    categories: 'categories',
    images: 'images',
    statistics: 'statistics',
    audit: 'audit',
    quotas: 'quotas',
    help: 'help/authors',
    'no-such-page': 'no/such/page',
  };
}
