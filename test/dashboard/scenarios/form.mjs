// Filling in the form of an application as people do.
import { call } from './harness.mjs';

/** The id of the package with this full name. */
export async function packageOf(request, fqn) {
  const { packages } = await call(request, 'GET', `/v1/catalog/packages?fqn=${fqn}&catalog=true`);
  return packages[0].id;
}

/** The address of the form that adds a package's application to an environment. */
export const addressOf = async (request, id, fqn) => `environments/${id}/add/${await packageOf(request, fqn)}`;

export const next = (page) => page.getByRole('button', { name: 'Next', exact: true }).click();
export const box = (page, name) => page.getByRole('textbox', { name: new RegExp(`^${name}`) });
export const list = (page, name) => page.getByRole('combobox', { name: new RegExp(`^${name}`) });

/** Chooses the first thing that can be chosen and whose words match. */
export async function choose(select, words = '') {
  const first = select.locator('option:not([disabled]):not([value=""])').filter({ hasText: words }).first();
  await first.waitFor({ state: 'attached' });
  await select.selectOption(await first.getAttribute('value'));
}

/** Goes through all steps, leaving what is offered, and sends the review. */
export async function through(page) {
  const add = page.getByRole('button', { name: 'Add to environment' });
  const onward = page.getByRole('button', { name: 'Next', exact: true });
  while (!(await add.isVisible())) {
    const before = page.url();
    await onward.click();
    await page.waitForURL((url) => url.href !== before);
    await add.or(onward).first().waitFor();
  }
  await add.click();
}
