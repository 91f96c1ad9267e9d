import './style/tokens.css';
import './style/page.css';
import './style/parts.css';
import './style/forms.css';
import './style/shell.css';
import { render } from 'preact';
import { followLinks } from './routing/location.js';
import { App } from './shell/app.js';
import { applyTheme } from './shell/theme.js';

applyTheme();
followLinks();
render(<App />, document.getElementById('app')!);
