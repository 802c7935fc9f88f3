// All that opens over pages or within them: dialogs, menus, steps of wizards, tabs of a cluster. What is looked at in each light and width.
import { axe } from './axe.mjs';
import { pretend } from './cluster.mjs';
import { packageOf } from './form.mjs';
import { call, calm, deploy, environment, eventually, fresh, memberOf, open } from './harness.mjs';

const button = (page, name) => page.getByRole('button', { name, exact: typeof name === 'string' }).first();
const inDialog = (page, name) => page.getByRole('dialog').last().getByRole('button', { name, exact: true });
const file = (name, text) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) });

/** Opens an address and presses one button after another; what the last one opens is then there. */
const press = (address, ...names) => async (page) => {
  await page.goto(address);
  await calm(page);
  for (const name of names) await button(page, name).click();
  await page.getByRole('dialog').or(page.getByRole('menu')).first().waitFor();
};

/** The same for what stands in the menu of a row. */
const choose = (address, row, item) => async (page) => {
  await page.goto(address);
  await calm(page);
  await page.getByRole('row').filter({ hasText: row }).getByRole('button', { name: /^Actions/ }).first().click();
  await page.getByRole('menuitem', { name: item }).click();
  await page.getByRole('dialog').waitFor();
};

const at = (address) => async (page) => {
  await page.goto(address);
};

/** Opens sheets by their names. A function that shows something to somebody else returns that window. The pages are those of allPages. */
export async function allSheets(request, pages) {
  const acts = await deploy(request, { type: 'io.burano.test.Acts', name: 'acts', adminPassword: 'former secret' });
  await eventually(() => call(request, 'GET', `/v1/environments/${acts.environment}`), (now) => now.status === 'ready', 'the deployment');
  const [component] = await call(request, 'GET', `/v1/environments/${acts.environment}/services`);
  const actsPage = `environments/${acts.environment}/components/${component['?'].id}`;
  /** Begins a draft elsewhere and looks at whose drafts there are. An action that has run since has overtaken a former one. */
  const others = async (page) => {
    const session = (await call(request, 'POST', `/v1/environments/${acts.environment}/configure`)).id;
    await call(request, 'PUT', `/v1/environments/${acts.environment}/services`, [{ ...component, size: 5, adminPassword: 'another secret' }], { headers: { 'X-Configuration-Session': session } });
    await page.goto(`environments/${acts.environment}`);
    await button(page, 'Who holds them').click();
  };
  const refused = await deploy(request, { type: 'io.burano.test.Acts', name: 'acts' });
  await eventually(() => call(request, 'GET', `/v1/environments/${refused.environment}`), (now) => now.status === 'ready', 'the deployment');
  const edit = (await call(request, 'POST', `/v1/environments/${refused.environment}/configure`)).id;
  const [{ '?': header }] = await call(request, 'GET', `/v1/environments/${refused.environment}/services`);
  await call(request, 'PUT', `/v1/environments/${refused.environment}/services`, [{ '?': header, name: 'acts', size: 'many' }], { headers: { 'X-Configuration-Session': edit } });
  await call(request, 'POST', `/v1/environments/${refused.environment}/sessions/${edit}/deploy`);
  await eventually(() => call(request, 'GET', `/burano/v1/environments/${refused.environment}/sessions`), ({ sessions }) => sessions.some((one) => one.rejected), 'the refusal');
  const withCluster = await environment(request);
  const empty = pages['environment-empty'];
  const hello = await packageOf(request, 'io.burano.test.Hello');
  const form = `${empty}/add/${await packageOf(request, 'io.burano.test.Fields')}`;
  const [alone, between] = [await memberOf(fresh('alone')), await memberOf(fresh('one'), fresh('two'))];

  const action = async (page) => {
    await page.goto(actsPage);
    await button(page, /^Actions/).click();
    await page.getByRole('menuitem', { name: 'Resize' }).click();
    await page.getByRole('dialog').getByLabel('count').waitFor();
  };
  const byKey = (key) => async (page) => {
    await page.goto('environments');
    await calm(page);
    await page.keyboard.press(key);
    await page.getByRole('dialog').waitFor();
  };
  const upload = (...files) => async (page) => {
    await press('packages', 'Import packages')(page);
    if (files.length > 0) await page.getByRole('dialog').locator('input[type="file"]').setInputFiles(files);
  };
  const to = (user, show) => async (page) => {
    const dark = await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches);
    const other = await open(user, { viewport: page.viewportSize(), colorScheme: dark ? 'dark' : 'light', watch: false });
    await other.addInitScript(axe);
    await show(other);
    return other;
  };
  const cluster = (rest, ...names) =>
    to('demo', async (page) => {
      await pretend(page);
      await page.goto(`environments/${withCluster}/clusters/c1${rest}`);
      await calm(page);
      for (const name of names) await (typeof name === 'string' ? button(page, name) : name(page)).click();
      if (names.length > 0) await page.getByRole('dialog').waitFor();
    });

  return {
    'menu-project': press('environments', /^Choose a project/),
    'menu-account': press('environments', /^Signed in/),
    'menu-help': press('environments', 'Help'),
    palette: byKey('Control+k'),
    'palette-found': async (page) => {
      await byKey('Control+k')(page);
      await page.keyboard.type('pa');
    },
    keyboard: byKey('?'),
    about: async (page) => {
      await press('environments', 'Help')(page);
      await page.getByRole('menuitem', { name: 'About' }).click();
      await page.getByRole('dialog').waitFor();
    },
    'environment-create': press('environments', 'Create environment'),
    'environment-menu': press('environments', /^Actions of/),
    'environment-rename': press(pages.environment, 'Rename'),
    'environment-delete': press(pages.environment, 'Delete'),
    'environment-refused': async (page) => {
      await page.goto(`environments/${refused.environment}`);
      await page.getByText('Your last edit was refused').waitFor();
    },
    'environment-deploy': to('demo', async (page) => {
      const message = 'pod db is removed, and leaves in the cluster with its data: claim db-var-lib-postgresql-data (10Gi, made 3 May 2026)';
      await page.route('**/preview', async (route) => {
        const answer = await route.fetch();
        const consents = [{ object_id: 'p1', name: 'db', message, claims: ['db-var-lib-postgresql-data'] }];
        const losses = [{ kind: 'server', object_id: 'i1', object: 'murano-kube-3', cloud_id: '0b2c3d4e-5f60-4718-9a0b-1c2d3e4f5061' }];
        await route.fulfill({ response: answer, json: { ...(await answer.json()), consents, losses, means: [message], notes: ['claim web-data of pod web keeps 10Gi'] } });
      });
      await press(`environments/${refused.environment}`, 'Deploy')(page);
      await page.getByRole('checkbox', { name: message }).waitFor();
    }),
    'delegation-give': press(pages['environment-access'], 'Give delegation'),
    'draft-of-others': others,
    'draft-changes': async (page) => {
      await others(page);
      await button(page, 'Go on with it').click();
      await button(page, 'The change').click();
    },
    'component-edit': async (page) => {
      await press(actsPage, 'Edit')(page);
      await page.getByRole('dialog').getByRole('textbox').first().waitFor();
    },
    'component-edit-metadata': press(`${actsPage}?tab=metadata`, 'Edit metadata'),
    'component-remove': async (page) => {
      await page.goto(pages.environment);
      await page.getByRole('button', { name: /^Remove .* from the draft/ }).first().click();
      await page.getByRole('dialog').waitFor();
    },
    action,
    'action-mistakes': async (page) => {
      await action(page);
      await inDialog(page, 'Run').click();
    },
    'action-done': async (page) => {
      await action(page);
      await page.getByRole('dialog').getByLabel('Size of servers').selectOption('large');
      await inDialog(page, 'Run').click();
      await page.getByRole('dialog').getByText('2 of large').waitFor();
    },
    'packages-import': upload(),
    'packages-import-bundle': upload(file('demo.bundle', JSON.stringify({ Packages: [{ Name: 'io.example.One' }, { Name: 'io.example.Two' }] })), file('io.example.Two.zip', 'x')),
    'packages-import-refused': async (page) => {
      await upload(file('notes.zip', 'this is no archive'))(page);
      await inDialog(page, 'Import').click();
      await page.getByText('notes.zip was refused').waitFor();
    },
    'package-edit': to('admin', choose('packages?search=Hello', 'Hello', 'Edit')),
    'package-delete': to('admin', choose('packages?search=Hello', 'Hello', 'Delete')),
    'category-add': to('admin', press('categories', 'Add category')),
    'images-admin': to('admin', at('images')),
    'image-mark': to('admin', press('images', /^Change the mark/)),
    'template-create': press('templates', 'Create template'),
    'template-rename': choose('templates', 'template', 'Rename'),
    'template-environment': choose('templates', 'template', 'Create environment'),
    'choose-environment': press(`catalog/${hello}`, 'Add to environment'),
    'wizard-refused': async (page) => {
      await page.goto(`${empty}/add/${hello}`);
      await page.getByRole('textbox', { name: /^Greeting/ }).fill('small');
      await button(page, 'Next').click();
      await page.getByText('It begins with a capital letter').waitFor();
    },
    'wizard-fields': at(form),
    'wizard-fields-2': at(`${form}?step=2`),
    'wizard-fields-3': at(`${form}?step=3`),
    'wizard-within': press(`${form}?step=3`, 'Add new: A greeting'),
    'wizard-cluster-2': at(`${pages['wizard-cluster']}?step=2`),
    'wizard-cluster-3': at(`${pages['wizard-cluster']}?step=3`),
    'all-environments': to('admin', at('environments/all')),
    audit: to('admin', at('audit')),
    quotas: to('admin', at('quotas')),
    doctor: to('admin', at('doctor')),
    cluster: cluster(''),
    'cluster-running': cluster('?tab=running'),
    'cluster-protection': cluster('?tab=protection'),
    'cluster-snapshot': cluster('?tab=protection', 'Take a snapshot'),
    'cluster-rotate': cluster('?tab=protection', 'rotate'),
    'cluster-restore': cluster('?tab=protection', (page) => page.getByRole('row').filter({ hasText: 'By schedule' }).getByRole('button', { name: /^Actions/ }), (page) => page.getByRole('menuitem', { name: 'Restore' })),
    pod: cluster('/pods/default/web-6f7c9d-abcde'),
    workload: cluster('/workloads/default/Deployment/web'),
    'workload-scale': cluster('/workloads/default/Deployment/web', 'Scale'),
    'workload-restart': cluster('/workloads/default/Deployment/web', 'Restart'),
    'sign-in': to(null, async (page) => {
      await page.goto('');
      await page.locator('#signin-user').waitFor();
    }),
    'sign-in-credential': to(null, async (page) => {
      await page.goto('');
      await button(page, 'Application credential').click();
    }),
    'sign-in-refused': to(null, async (page) => {
      await page.goto('');
      await page.locator('#signin-user').fill('demo');
      await page.locator('#signin-password').fill('wrong');
      await button(page, 'Sign in').click();
      await page.locator('.pf-v6-c-alert.pf-m-danger').waitFor();
    }),
    'sign-in-empty': to(null, async (page) => {
      await page.goto('');
      await button(page, 'Sign in').click();
      await page.getByText('Type your user and your password.').waitFor();
    }),
    'sign-in-project': to(between, async (page) => {
      await page.goto('');
      await page.getByText('Choose the project to work in').waitFor();
    }),
    'sign-in-again': to('demo', async (page) => {
      await page.goto('environments');
      await button(page, 'Create environment').click();
      await page.getByRole('dialog').getByLabel('Name').fill('x');
      await call(page.context().request, 'DELETE', '/burano/v1/session', undefined, { status: 204 });
      await inDialog(page, 'Create environment').click();
      await page.getByRole('dialog', { name: 'Your sign-in has ended' }).waitFor();
    }),
    welcome: to(alone, (page) => page.goto('catalog')),
    'environments-none': to(alone, (page) => page.goto('environments')),
    'templates-none': to(alone, (page) => page.goto('templates')),
    'deployments-none': to(alone, (page) => page.goto('deployments')),
  };
}

/** Opens a sheet, looks at it and closes what was opened for it alone. */
export async function eachSheet(page, show, look) {
  const other = await show(page);
  const shown = other ?? page;
  try {
    await calm(shown);
    return await look(shown);
  } finally {
    await other?.context().close();
  }
}
