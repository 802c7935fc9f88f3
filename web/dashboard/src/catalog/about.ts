// A package's forms and supplier.
import { requirementsOf, showRequirements } from '../wizard/cloud';
import type { Form } from '../wizard/values';
import type { Texts } from '../text/en';

/** The licence that a package's forms name: the description of their hidden field of that name. */
export function licenseOf(forms: Form[]): string {
  const field = forms.flatMap((form) => form.fields).find((one) => one.name === 'license');
  return field?.description || (typeof field?.initial === 'string' ? field.initial : '');
}

/** The requirements of the application's deployment, one line each. */
export function needsOf(forms: Form[], words: Texts['details']): string[] {
  return forms.flatMap((form) =>
    form.fields.flatMap((field) => {
      const label = field.label || field.name;
      if (field.type === 'object' && field.required) return [words.needs(label, (field.classes ?? []).join(', '))];
      if (field.type === 'image' && typeof field.options?.image_type === 'string') return [words.image(label, field.options.image_type)];
      if (field.type !== 'flavor') return [];
      const limits = showRequirements(requirementsOf(field.options), words);
      return limits.length > 0 ? [words.flavor(label, limits.join(', '))] : [];
    }),
  );
}

export interface Supplier {
  name: string;
  summary: string;
  description: string;
  /** '' where there is none that a browser may go to. */
  link: string;
  linkText: string;
}

/** Reads a package's supplier from its manifest; null without one. */
export function supplierOf(written: unknown): Supplier | null {
  const supplier = (typeof written === 'object' && written !== null ? written : {}) as Record<string, unknown>;
  const find = (object: Record<string, unknown>, name: string): unknown => Object.entries(object).find(([key]) => key.toLowerCase() === name)?.[1];
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const url = find(supplier, 'companyurl') ?? find(supplier, 'company_url');
  const company = (typeof url === 'object' && url !== null ? url : { link: url }) as Record<string, unknown>;
  const link = text(find(company, 'link'));
  const read: Supplier = {
    name: text(find(supplier, 'name')),
    summary: text(find(supplier, 'summary')),
    description: text(find(supplier, 'description')),
    link: /^https?:\/\//i.test(link) ? link : '',
    linkText: text(find(company, 'text')) || link,
  };
  return read.name || read.summary || read.description || read.link ? read : null;
}

/** The first quick-env-N that is free. */
export function quickName(taken: string[]): string {
  for (let n = 1; ; n++) {
    if (!taken.includes(`quick-env-${n}`)) return `quick-env-${n}`;
  }
}

/** The environment to begin with: the only one, or the only one with a draft of the user; '' where the user has to choose. */
export function suggested(environments: string[], hasDraft: (environment: string) => boolean): string {
  const drafted = environments.filter(hasDraft);
  return (environments.length === 1 ? environments[0] : drafted.length === 1 ? drafted[0] : '') ?? '';
}
