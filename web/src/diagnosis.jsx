// What was found in a file: in words, as a table beside what the model expects, and of a log of NCCL all that
// `gar nccl explain` says.
import { bytes, count, seconds } from './units.js';

const MOST_ROWS = 200;

function Table({ label, titles, children }) {
  return (
    <div class="scroll" tabindex="0" role="region" aria-label={label}>
      <table>
        <thead><tr>{titles.map((t) => <th scope="col">{t}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function NcclLog({ log }) {
  const parts = [['what costs time', log.findings.filter((f) => f.problem)], ['what it does', log.findings.filter((f) => !f.problem)]];
  return (
    <div id="nccl">
      <p>{log.summary}</p>
      {parts.map(([title, findings]) => findings.length > 0 && (
        <>
          <h4>{title}</h4>
          <ul>{findings.map((f) => <li class={f.problem ? 'problem' : ''}>{f.words}</li>)}</ul>
        </>
      ))}
      {log.links.length > 0 && (
        <Table label="Ways between the ranks" titles={['way', 'where', 'links']}>
          {log.links.map((l) => <tr><th scope="row">{l.way}</th><td>{l.within_host ? 'inside of a host' : 'between hosts'}</td><td>{count(l.count)}</td></tr>)}
        </Table>
      )}
      {log.choices.length > 0 && (
        <Table label="What NCCL took" titles={['collective', 'size', 'algorithm', 'protocol', 'expected', 'times']}>
          {log.choices.slice(0, MOST_ROWS).map((c) => (
            <tr><th scope="row">{c.collective ?? '?'}</th><td>{bytes(c.bytes)}</td><td>{c.algorithm}</td><td>{c.protocol}</td>
              <td>{c.expected_seconds > 0 ? seconds(c.expected_seconds) : '-'}</td><td>{count(c.count)}</td></tr>))}
        </Table>
      )}
      {log.topology && <p>A network guessed from the log: <code>{log.topology}</code></p>}
    </div>
  );
}

export function Diagnosis({ found }) {
  if (!found) return null;
  return (
    <div id="diagnosis" role="status">
      <h3>{found.name}</h3>
      {found.error ? <p class="error">{found.error}</p> : found.words.length > 0 && <ul>{found.words.map((w) => <li>{w}</li>)}</ul>}
      {found.nccl && <NcclLog log={found.nccl} />}
      {found.rows?.length > 0 && (
        <Table label="Measured and expected" titles={['size', 'algorithm', 'measured', 'expected', 'ratio', ...(found.rows[0].verdict ? ['verdict'] : [])]}>
          {found.rows.slice(0, MOST_ROWS).map((r) => (
            <tr><td>{bytes(r.bytes)}</td><td>{r.algorithm}{r.is_assumed ? '?' : ''}</td><td>{seconds(r.measured_seconds)}</td>
              <td>{seconds(r.expected_seconds)}</td><td>{r.ratio.toFixed(2)}</td>
              {r.verdict && <td class={`verdict-${r.verdict}`}>{r.verdict}</td>}</tr>))}
        </Table>
      )}
    </div>
  );
}
