import boundaries from 'eslint-plugin-boundaries'
import reactHooks from 'eslint-plugin-react-hooks'
import tseslint from 'typescript-eslint'

const allow = (from, ...to) => ({
  from: { element: { type: from } },
  allow: { to: to.map((t) => ({ element: typeof t === 'string' ? { type: t } : t })) },
})

const exportsByName = [
  { selector: 'ExportDefaultDeclaration', message: 'Export by name.' },
  { selector: 'ExportAllDeclaration', message: 'No barrels: import from the file itself.' },
]

export default tseslint.config(
  {
    ignores: [
      'dist',
      'notebook/dist',
      '**/node_modules',
      'eslint.resolver.cjs',
      'public',
      'e2e/results',
      'src/api/types.gen.ts',
      'src/api/rules.gen.ts',
      'src/api/runtimes.gen.ts',
    ],
  },
  ...tseslint.configs.strict,
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-empty-function': 'off',
      'max-len': ['error', { code: 120 }],
      'max-lines': ['error', { max: 300, skipBlankLines: false, skipComments: false }],
      'no-console': 'error',
      eqeqeq: 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-syntax': ['error', ...exportsByName],
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['**/*.test.{ts,tsx}', '**/testing/**', 'src/api/types.gen.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...exportsByName,
        ...['Literal[value=/api.v1/]', 'TemplateElement[value.raw=/api.v1/]'].map((selector) => ({
          selector,
          message: 'Call a route of api/types.gen.ts by its name.',
        })),
      ],
    },
  },
  {
    files: ['**/*.test.{ts,tsx}', 'e2e/**'],
    rules: { 'max-lines': ['error', { max: 400 }] },
  },
  {
    // One way only: app composes features; features are strangers to one
    // another and stand on ui, api, i18n and lib.
    files: ['src/**/*.{ts,tsx}'],
    plugins: { boundaries },
    settings: {
      'import/resolver': { './eslint.resolver.cjs': {} },
      'boundaries/elements': [
        { type: 'app', pattern: 'src/app/**', partialMatch: false },
        { type: 'feature', pattern: 'src/features/*/**', partialMatch: false, capture: ['name'] },
        { type: 'ui', pattern: 'src/ui/**', partialMatch: false },
        { type: 'api', pattern: 'src/api/**', partialMatch: false },
        { type: 'i18n', pattern: 'src/i18n/**', partialMatch: false },
        { type: 'lib', pattern: 'src/lib/**', partialMatch: false },
      ],
    },
    rules: {
      'boundaries/dependencies': [
        'error',
        {
          default: 'disallow',
          policies: [
            allow('app', 'app', 'feature', 'ui', 'api', 'i18n', 'lib'),
            allow('feature', 'ui', 'api', 'i18n', 'lib', {
              type: 'feature',
              captured: { name: '{{ from.element.captured.name }}' },
            }),
            allow('ui', 'ui', 'i18n', 'lib'),
            allow('api', 'api', 'lib'),
            allow('i18n', 'i18n', 'lib'),
            allow('lib', 'lib'),
          ],
        },
      ],
    },
  },
  {
    files: ['**/*.config.{js,ts}'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['{src,notebook/src}/**/*.test.{ts,tsx}', 'e2e/**/*.ts'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off' },
  },
)
