// Package gate asks whether gates of NodeRollouts are open: a Prometheus, or the API server about an
// object. A question costs a bounded time and memory. What cannot be asked is unknown.
package gate
