import type { ArtifactUse, ArtifactWithUses } from '../../../../src/core/artifact.js';
import { useResource } from '../../api/resource.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { Facts } from '../../parts/facts.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { goTo } from '../../routing/location.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { bytesText } from './bytes-text.js';

/** One artifact, and what names it. */
export default function ArtifactScreen({ params: { id = '' } }: ScreenProps) {
  const path = `/v1/artifacts/${encodeURIComponent(id)}`;
  const artifact = useResource<ArtifactWithUses>(path, { everyMs: 5_000 });
  const view = artifact.data.value;
  const title = view?.name ? `${view.name}@${view.version}` : (view?.output ?? 'Artifact');
  return (
    <>
      <ScreenTop title={title}>
        {view && <Delete id={id} title={title} path={path} />}
        <CopyAs method="GET" path={path} cli={`punctual artifact get ${id}`} />
      </ScreenTop>
      <div class="stack">
        <Panel title="State" resource={artifact}>
          {(now) => <State artifact={now} />}
        </Panel>
        <Panel title="Named by" resource={artifact}>
          {({ usedBy }) => <Uses uses={usedBy} />}
        </Panel>
      </div>
    </>
  );
}

function State({ artifact }: { readonly artifact: ArtifactWithUses }) {
  const { id, state, kind, machine, size, sha256, createdAt, createdBy, readyAt, expiresAt, job } = artifact;
  return (
    <Facts
      facts={[
        ['State', <StateBadge key="state" state={state} tone={state === 'ready' ? 'good' : 'warn'} />],
        ['Kind', [kind, machine].filter((each) => each !== null).join(', ') || null],
        ['Size', bytesText(size)],
        ['Created', <Moment key="created" at={createdAt} />],
        ['By', createdBy],
        ['Uploaded', readyAt && <Moment key="ready" at={readyAt} />],
        ['Can be uploaded until', expiresAt && <Moment key="expires" at={expiresAt} />],
        [
          'Left by job',
          job && (
            <a key="job" class="mono" href={addressOf(`/jobs/${job}`)}>
              {job}
            </a>
          ),
        ],
        [
          'SHA-256',
          <span key="sha256" class="mono">
            {sha256}
          </span>,
        ],
        [
          'Id',
          <span key="id" class="mono">
            {id}
          </span>,
        ],
      ]}
    />
  );
}

/** Where what names an artifact is shown; definitions of tasks and workflows have no screens. */
function pathOf({ kind, name }: ArtifactUse): string | null {
  if (kind === 'job') return `/jobs/${name}`;
  return kind === 'schedule' ? `/schedules/${encodeURIComponent(name)}` : null;
}

function Uses({ uses }: { readonly uses: readonly ArtifactUse[] }) {
  if (uses.length === 0)
    return <p class="soft">No job that has not ended, schedule, task or definition names it.</p>;
  return (
    <Facts
      facts={uses.map((use) => {
        const path = pathOf(use);
        return [
          `${use.kind} ${use.name}`,
          path === null ? 'names it' : <a href={addressOf(path)}>Show the {use.kind}</a>,
        ] as const;
      })}
    />
  );
}

function Delete({ id, title, path }: { readonly id: string; readonly title: string; readonly path: string }) {
  return (
    <ActionButton
      action={{
        label: 'Delete',
        method: 'DELETE',
        path,
        cli: `punctual artifact delete ${id}`,
        scope: 'admin',
        isDangerous: true,
        done: `${title} is deleted.`,
        question: {
          title: `Delete ${title}?`,
          text: 'Its bytes are gone then. What is named by a job, a schedule, a task or a definition cannot be deleted.',
          verb: 'Delete',
          isDangerous: true,
        },
        onDone: () => goTo('/artifacts'),
      }}
    />
  );
}
