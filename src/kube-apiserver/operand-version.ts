/** The version of kube-apiserver that the tag of an image names, such as 1.36.3 for `.../kube-apiserver:v1.36.3`; undefined without one. */
export function versionOfImage(image: string): string | undefined {
  const [, version] = /:v?(1\.\d+\.\d+(?:[-+_.][\w.-]*)?)(?:@.*)?$/.exec(image) ?? [];
  return version;
}
