import './home.css';
import { may } from '../../api/session.js';
import { ScreenTop } from '../../parts/panel.js';
import { HomeCharts } from './home-charts.js';
import { HomeTiles } from './home-tiles.js';
import { LoadAhead } from './load-ahead.js';
import { NextFires } from './next-fires.js';
import { QueueActivity } from './queue-activity.js';
import { WaitingReasons } from './waiting-reasons.js';

/** How things are: what runs, what waits and why, how punctual it is, and what comes. */
export default function HomeScreen() {
  return (
    <>
      <ScreenTop title="Home">
        {may('submit') && (
          <a class="button" href="./submit">
            Submit a job
          </a>
        )}
      </ScreenTop>
      <div class="home">
        <HomeTiles />
        <HomeCharts />
        <WaitingReasons />
        <QueueActivity />
        <LoadAhead />
        <NextFires />
      </div>
    </>
  );
}
