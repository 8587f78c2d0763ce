/** What is wanted of a CA, or of the keys of service accounts. */
export type Aim = 'rotate' | 'take-back' | 'retire';
