// A workflow: A before B and C, both before D, which waits for somebody's approval, too. Results go from step to step.
// Start a node in this folder first: `bin/punctual up`.
import { connect, task, workflow } from 'punctual';

// The names of tasks belong to the tenant, so these begin with what they are about: another worker may serve a `render`.
const render = task('page.render', (input) => ({ html: `<h1>${input.title}</h1>` }));
const check = task('page.check', (input) => ({ ok: input.html.startsWith('<h1>') }));
const shrink = task('page.shrink', (input) => ({ html: input.html.replaceAll(' ', '') }));
const publish = task('page.publish', (input) => `${input.by} published ${input.html}`);

// The handles make the edges: what takes the result of a step runs after it.
const publishPage = workflow('publish-page', { onFailure: 'stop' }, (w, input) => {
  const page = w.run(render, input);
  const checked = w.run(check, { html: page.result.html });
  const small = w.run(shrink, { html: page.result.html });
  const approved = w.wait({ event: 'approved', timeout: '2d' });
  return w.run(publish, { html: small.result.html, by: approved.result.by }, { after: [checked] });
});

const punctual = connect();
const worker = punctual.worker([render, check, shrink, publish]);
await worker.start();

const run = await punctual.start(publishPage, { title: 'Hello Ada' });
await run.sendEvent('approved', { by: 'Grace' });
console.log(await run.result({ signal: AbortSignal.timeout(30_000) }));

const { jobs } = await run.get();
for (const [name, { state, after }] of Object.entries(jobs))
  console.log(`${name} after [${after}]: ${state}`);

await worker.drain();
await punctual.close();
