/** The last part of an error's name, however the language it comes from joins them: `java.io.IOException`, `App\\Error`. */
export const shortType = (type: string): string => type.split(/[.\\:/]/).filter(Boolean).at(-1) ?? type;
