/** A source that is missing or cannot be used: names the object and the field, never the content. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** Such as `configmap openshift-config/user-ca-bundle`. */
  readonly object: string;
  /** The key or path inside it; empty where the object itself is the matter. */
  readonly field: string;

  constructor(object: string, field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.object = object;
    this.field = field;
  }
}
