import type { UseCases } from '../use-cases.js';
import type { DescribeRoute } from './describe-route.js';
import type { LongPolls } from './long-polls.js';
import type { HttpLimits } from './options.js';

/** What the routes are made of. */
export interface RouteParts {
  readonly useCases: UseCases;
  readonly limits: HttpLimits;
  readonly longPolls: LongPolls;
  readonly describe: DescribeRoute;
}
