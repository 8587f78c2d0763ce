import api from 'undici/lib/api/index.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

// The whole of undici, with its fetch and its web sockets, takes a tenth of a second to load. Commands that people type many times a
// day need only its pool; this is how undici itself puts the calls onto it.
Object.assign(Dispatcher.prototype, api);

export { Pool };
