import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { negotiate } from './accept.ts';

describe('what a client accepts', () => {
  const PROTOBUF = 'application/vnd.kubernetes.protobuf';
  const of = (as: string, v = 'v1', g = 'meta.k8s.io') => `application/json;as=${as};v=${v};g=${g}`;
  const json = { format: 'json', as: undefined };
  const metadata = { format: 'json', as: 'PartialObjectMetadata' };

  const accepted: [rule: string, header: string | undefined, output: object][] = [
    ['anything', undefined, json],
    ['nothing said', ' ', json],
    ['any of a kind', 'application/*', json],
    ['a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', json],
    ['protocol buffers alone', PROTOBUF, { format: 'protobuf', as: undefined }],
    ['protocol buffers or JSON', `${PROTOBUF},application/json`, json],
    ['the more wanted of two', 'application/json;q=0.5,application/yaml', { format: 'yaml', as: undefined }],
    ['a table', of('Table'), { format: 'json', as: 'Table' }],
    ['a table of a beta that is gone, or JSON', `${of('Table', 'v1beta1')},application/json`, json],
    ['bare metadata', of('PartialObjectMetadata'), metadata],
    ['bare metadata of the beta', of('PartialObjectMetadata', 'v1beta1'), metadata],
  ];
  for (const [rule, header, output] of accepted) {
    it(`answers: ${rule}`, () => assert.deepEqual(negotiate(header, true), output));
  }

  const refused: [rule: string, header: string][] = [
    ['nothing that is spoken', 'text/html'],
    ['JSON, but not at all', 'application/json;q=0'],
    ['a table in protocol buffers', `${PROTOBUF};as=Table;v=v1;g=meta.k8s.io`],
    ['a table of another group', of('Table', 'v1', 'example.com')],
    ['a table of another version', of('Table', 'v2')],
    ['bare metadata of another version', of('PartialObjectMetadata', 'v2')],
    ['another view', of('Chart')],
  ];
  for (const [rule, header] of refused) {
    it(`refuses: ${rule}`, () => {
      assert.throws(() => negotiate(header, true), { code: 406, message: /application\/vnd\.kubernetes\.protobuf/ });
    });
  }

  it('a kind that has no protocol buffers does not offer them', () => {
    assert.throws(
      () => negotiate(PROTOBUF, false),
      (error: Error) => /application\/json/.test(error.message) && !/protobuf/.test(error.message),
    );
  });
});
