import js from '@eslint/js';

const browser = Object.fromEntries(
  ['atob', 'Blob', 'btoa', 'clearTimeout', 'CompressionStream', 'console', 'DecompressionStream', 'document', 'getComputedStyle', 'Image', 'location',
   'navigator', 'performance', 'Response', 'self', 'setTimeout', 'TextDecoder', 'TextEncoder', 'URL', 'WebAssembly', 'window', 'Worker',
   'XMLSerializer', 'cancelAnimationFrame', 'requestAnimationFrame'].map((name) => [name, 'readonly']));
const node = Object.fromEntries(['Buffer', 'process', 'console', 'performance', 'setTimeout', 'clearTimeout', 'setImmediate', 'queueMicrotask', 'document',
                                 'window', 'location', 'navigator', 'URL', 'getComputedStyle', 'requestAnimationFrame', 'File', 'DataTransfer', 'DragEvent',
                                 'DOMPoint'].map((name) => [name, 'readonly']));

export default [
  js.configs.recommended,
  {
    files: ['src/**/*.{js,jsx}'],
    languageOptions: { globals: browser, parserOptions: { ecmaFeatures: { jsx: true } } },
    rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error' },
  },
  { files: ['*.{js,mjs}', 'test/**/*.mjs'], languageOptions: { globals: node }, rules: { eqeqeq: 'error', 'prefer-const': 'error' } },
];
