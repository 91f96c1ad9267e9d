import { join } from 'node:path';
import { type Config, environmentName } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import type { ArtifactStore } from './artifact-store.js';
import { FolderStore } from './folder-store.js';
import { MOST_BUCKET_BYTES, S3Store } from './s3-store.js';

const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/;

type StoreSettings = Pick<
  Config,
  | 'artifactStore'
  | 'data'
  | 'maxArtifactBytes'
  | 's3Endpoint'
  | 's3Region'
  | 's3AccessKeyId'
  | 's3SecretAccessKey'
>;

/** The store that the settings name. Nothing is read or written before it is used. */
export function openStore(settings: StoreSettings): ArtifactStore {
  const { artifactStore, data } = settings;
  if (!/^[a-z0-9]+:\/\//i.test(artifactStore))
    return new FolderStore(artifactStore === '' ? join(data, 'artifacts') : artifactStore);
  const [, bucket, path = ''] = BUCKET.exec(artifactStore) ?? [];
  if (bucket === undefined)
    throw wrong('artifactStore', 'expected a folder, or a bucket such as s3://bucket/prefix');
  const { s3Endpoint: endpoint, s3Region: region, s3AccessKeyId: accessKeyId } = settings;
  const { s3SecretAccessKey: secretAccessKey } = settings;
  if (settings.maxArtifactBytes > MOST_BUCKET_BYTES)
    throw wrong('maxArtifactBytes', `a bucket takes artifacts of at most ${MOST_BUCKET_BYTES} bytes`);
  if (accessKeyId === '' || secretAccessKey === '')
    throw wrong('s3AccessKeyId', `a bucket needs a key: set it and ${environmentName('s3SecretAccessKey')}`);
  if (endpoint !== '' && !(URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol)))
    throw wrong('s3Endpoint', 'expected an http or https address');
  const prefix = path.replace(/^\/+|\/+$/g, '');
  const options = { bucket, endpoint, region, accessKeyId, secretAccessKey };
  return new S3Store(options, prefix === '' ? '' : `${prefix}/`);
}

function wrong(name: keyof StoreSettings, detail: string): PunctualError {
  return new PunctualError('CONFIGURATION', `${environmentName(name)}: ${detail}.`);
}
