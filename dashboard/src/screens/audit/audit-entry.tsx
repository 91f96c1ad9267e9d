import type { AuditView } from '../../../../src/core/audit.js';
import { Dialog } from '../../parts/dialog.js';
import { exactText } from '../../parts/duration-text.js';
import { Facts } from '../../parts/facts.js';
import { JsonView } from '../../parts/json-view.js';

interface AuditEntryProps {
  readonly entry: AuditView;
  readonly onClose: () => void;
}

/** One entry with what it changed. */
export function AuditEntryDialog({ entry, onClose }: AuditEntryProps) {
  const { action, kind, subject, at, keyName, keyId, address, requestId, outcome, sequence, hash } = entry;
  return (
    <Dialog title={action} onClose={onClose} isWide>
      <Facts
        facts={[
          [
            kind,
            <span key="subject" class="mono">
              {subject}
            </span>,
          ],
          ['When', exactText(at)],
          ['By', keyId === null ? keyName : `${keyName} (${keyId})`],
          ['From', address],
          ['Request', requestId],
          ['Outcome', outcome],
          ['Place in the chain', sequence === null ? 'not yet' : `${sequence}, ${hash?.slice(0, 12)}…`],
        ]}
      />
      {entry.before && (
        <>
          <h3>Before</h3>
          <JsonView value={entry.before} label="Before" />
        </>
      )}
      {entry.after && (
        <>
          <h3>After</h3>
          <JsonView value={entry.after} label="After" />
        </>
      )}
    </Dialog>
  );
}
