import hooks from 'eslint-plugin-react-hooks';
import typescript from 'typescript-eslint';

export default typescript.config(
  { ignores: ['dist', 'src/api/schema.d.ts'] },
  ...typescript.configs.recommended,
  hooks.configs.flat['recommended-latest'] ?? hooks.configs.flat.recommended,
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: {
      // Texts of packages, users and logs are shown as text, never as markup.
      'no-restricted-syntax': [
        'error',
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'Show it as text.' },
        { selector: 'JSXText[value=/[A-Za-z]{2}/]', message: 'Words stand in src/text, in all languages.' },
        {
          selector: 'JSXAttribute[name.name=/^(aria-label|alt|description|label|placeholder|title|titleText|content)$/] > Literal[value=/[A-Za-z]{2}/]',
          message: 'Words stand in src/text, in all languages.',
        },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
);
