import type { ArtifactView } from '../../../../src/core/artifact.js';
import type { Job } from '../../../../src/core/job.js';
import type { Page } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { seesArtifacts } from '../../api/session.js';
import { bytesText } from '../../parts/bytes-text.js';
import { Panel } from '../../parts/panel.js';
import { addressOf } from '../../routing/root.js';
import { DownloadArtifact } from '../artifacts/download-artifact.js';

/** As many as a job may leave. */
const MOST_OUTPUTS = 100;

/** What a program has left in its folder `output`. */
export function JobOutputs({ job: { id } }: { readonly job: Job }) {
  const outputs = useResource<Page<ArtifactView>>(`/v1/jobs/${id}/outputs?limit=${MOST_OUTPUTS}`, {
    ...{ events: ['job.*'], about: id },
  });
  return (
    <Panel title="Files it left" resource={outputs}>
      {({ data }) => (data.length === 0 ? <p class="soft">none</p> : <Outputs outputs={data} />)}
    </Panel>
  );
}

function Outputs({ outputs }: { readonly outputs: readonly ArtifactView[] }) {
  return (
    <table class="small-table">
      <tbody>
        {outputs.map((artifact) => (
          <tr key={artifact.id}>
            <th scope="row" class="mono" title={artifact.output ?? ''}>
              {seesArtifacts() ? (
                <a href={addressOf(`/artifacts/${artifact.id}`)}>{artifact.output}</a>
              ) : (
                artifact.output
              )}
            </th>
            <td class="cell-number">{bytesText(artifact.size)}</td>
            <td class="cell-number">
              <DownloadArtifact artifact={artifact} isSmall />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
