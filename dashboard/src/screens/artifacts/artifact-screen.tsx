import type { ArtifactUse, ArtifactWithUses } from '../../../../src/core/artifact.js';
import { useResource } from '../../api/resource.js';
import { CopyAs } from '../../parts/action.js';
import { bytesText } from '../../parts/bytes-text.js';
import { countText } from '../../parts/duration-text.js';
import { Facts } from '../../parts/facts.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { goTo } from '../../routing/location.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { artifactTitle, kindText } from './artifact-words.js';
import { DeleteArtifact } from './delete-artifact.js';
import { DownloadArtifact } from './download-artifact.js';

const EVERY_MS = 10_000;

/** One artifact: what it is, whether its bytes are there, and what names it. */
export default function ArtifactScreen({ params: { id = '' } }: ScreenProps) {
  const path = `/v1/artifacts/${encodeURIComponent(id)}`;
  const artifact = useResource<ArtifactWithUses>(path, { everyMs: EVERY_MS });
  const view = artifact.data.value;
  return (
    <>
      <ScreenTop title={<span class="mono">{view ? artifactTitle(view) : 'Artifact'}</span>}>
        {view && <DownloadArtifact artifact={view} />}
        {view && <DeleteArtifact artifact={view} onDone={() => goTo('/artifacts')} />}
        <CopyAs method="GET" path={path} cli={`punctual artifact get ${id}`} />
      </ScreenTop>
      <div class="grid">
        <Panel title="About it" resource={artifact}>
          {(now) => <About artifact={now} />}
        </Panel>
        <Panel title="Who uses it" resource={artifact}>
          {({ usedBy }) => <Uses uses={usedBy} />}
        </Panel>
      </div>
    </>
  );
}

function About({ artifact }: { readonly artifact: ArtifactWithUses }) {
  const { id, sha256, size, state, createdAt, createdBy, readyAt, expiresAt, job, output, name } = artifact;
  return (
    <Facts
      facts={[
        ['State', <StateBadge key="state" state={state} tone={state === 'ready' ? 'good' : 'warn'} />],
        [
          'Upload until',
          expiresAt && (
            <span key="until">
              <Moment at={expiresAt} />, else it is forgotten
            </span>
          ),
        ],
        ['What', kindText(artifact)],
        ['Size', `${bytesText(size)} (${countText(size)} bytes)`],
        [
          'Announced',
          <span key="made">
            <Moment at={createdAt} /> by {createdBy}
          </span>,
        ],
        ['There since', readyAt && <Moment key="ready" at={readyAt} />],
        [
          'Left by',
          job && (
            <span key="job">
              <a href={addressOf(`/jobs/${job}`)}>a job</a> as <span class="mono">{output}</span>
            </span>
          ),
        ],
        [
          'Other versions',
          name && (
            <a key="versions" href={addressOf(`/artifacts?name=${encodeURIComponent(name)}`)}>
              of {name}
            </a>
          ),
        ],
        [
          'SHA-256',
          <span key="hash" class="mono wrapped">
            {sha256}
          </span>,
        ],
        [
          'Id',
          <span key="id" class="mono wrapped">
            {id}
          </span>,
        ],
      ]}
    />
  );
}

const PATHS: Readonly<Record<ArtifactUse['kind'], (name: string) => string>> = {
  job: (id) => `/jobs/${id}`,
  schedule: (name) => `/schedules/${encodeURIComponent(name)}`,
  task: (name) => `/jobs?task=${encodeURIComponent(name)}`,
  definition: (name) => `/workflows?definition=${encodeURIComponent(name)}`,
};

function Uses({ uses }: { readonly uses: readonly ArtifactUse[] }) {
  if (uses.length === 0)
    return (
      <p class="soft">Nothing names it: no schedule, task or definition, and no job that has not ended.</p>
    );
  return (
    <table class="small-table">
      <tbody>
        {uses.map(({ kind, name }) => (
          <tr key={`${kind} ${name}`}>
            <th scope="row">
              <a class="mono" href={addressOf(PATHS[kind](name))}>
                {name}
              </a>
            </th>
            <td class="cell-number soft">{kind}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
