// Package shutdown delays the shutdown of a node while its pods leave: one loop reads
// systemd-logind, calls core/nodeagent/shutdown, writes down its next step, and takes or
// releases the inhibitor. It never waits for an API server, so a shutdown continues in time
// without one. The entry is on disk before the inhibitor changes, but a full disk keeps no node
// from shutting down.
package shutdown
