import { ROUTES } from '../routes.js';
import { apiDocument } from './api-document.js';

/** The text of the committed OpenAPI document, made without a running node. */
export async function openApiText(version: string): Promise<string> {
  return `${JSON.stringify(await apiDocument(ROUTES, version), null, 2)}\n`;
}
